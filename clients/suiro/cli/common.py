"""What the commands share: options, and tables."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer

from suiro.cli.output import Output, printed
from suiro.model.errors import InvalidRequest, UnknownTopicOrPartition
from suiro.model.ids import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Sequence

    from suiro.admin import Admin

T = TypeVar("T")

Bootstrap = Annotated[
    str | None,
    typer.Option(
        "--bootstrap",
        "-b",
        envvar="SUIRO",
        help="Where the cluster is: suiro://host:port,… (default: --context NAME, the current "
        "context, or what `suiro up` starts here).",
        show_default=False,
    ),
]

__all__ = [
    "Bootstrap",
    "Output",
    "TopicName",
    "in_loop",
    "partition_of",
    "print_table",
    "printed",
]

VERDICT_NO: Final = 3
"""The exit code of a command that was asked a question, when the answer is no. 1 is an error, 2 a
command line that nobody understands."""

TopicName = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")]

UNITS: Final = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "KI": 2**10, "MI": 2**20, "GI": 2**30}


def parse_rate(text: str | None) -> int:
    """`50MB/s`, `1.5GiB/s`, `4000`; nothing and 0 are no limit."""
    if text is None:
        return 0
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMG]I?)?B?(?:/S)?\s*", text.upper())
    if found is None:
        raise InvalidRequest(f"'{text}' is not a rate; write it as 50MB/s")
    return int(float(found[1]) * UNITS[found[2] or ""])


def parse_time_ms(text: str) -> int:
    """`2026-11-18T12:00:00Z`, or milliseconds since 1970."""
    if text.isdecimal():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidRequest(
            f"'{text}' is not a time; write it as 2026-11-18T12:00:00Z, or as milliseconds"
        ) from None
    if moment.tzinfo is None:
        raise InvalidRequest(f"'{text}' needs a time zone: {text}Z, or {text}+01:00")
    return round(moment.timestamp() * 1000)


def partition_of(admin: Admin, topic: str, number: int) -> TopicPartition:
    """The partition that was named. One that is not there is refused at once: the client itself
    would look for half a minute whether it has just been made.
    """
    count = len(admin.describe_topic(topic).partitions)
    if not 0 <= number < count:
        raise UnknownTopicOrPartition(f"{topic} has the partitions 0 to {count - 1}")
    return TopicPartition(topic, number)


def in_loop(work: Coroutine[Any, Any, T]) -> T:
    """What the work returns, from the loop that all clients of a process share: a loop that is
    closed while gRPC still has news for it makes others miss theirs (see `loop_thread`).
    """
    from suiro.loop_thread import LoopThread

    loop = LoopThread()
    try:
        return loop.run(work)
    finally:
        loop.close()


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns of plain text, wide enough for what is in them; easy for people and for awk."""
    lines = [tuple(columns), *(tuple(str(cell) for cell in row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    for line in lines:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        typer.echo("  ".join(padded).rstrip())
