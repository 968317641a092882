"""What a node logs: lines for people or JSON for machines, each with the request it belongs to."""

from __future__ import annotations

import json
import logging

from suiro.transport.trace import current_id


def set_up_logging(style: str, level: str = "info") -> None:
    """Log to standard error; `style` is human or json, `level` counts for our own loggers."""
    handler = logging.StreamHandler()
    handler.setFormatter(_JsonFormatter() if style == "json" else _HumanFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("suiro").setLevel(level.upper())


class _HumanFormatter(logging.Formatter):
    """`… I suiro.broker [4bf92f3577b34da6a3ce929d0e0e4736]: clicks-0: …`"""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname).1s %(name)s%(request)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        request = current_id()
        record.request = f" [{request}]" if request else ""
        return super().format(record)


class _JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if request := current_id():
            line["request"] = request
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)
