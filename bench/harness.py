"""What every benchmark is made of: repeat, take the median, stand it beside a ceiling.

No benchmark asserts a time. A row is a median with its spread, measured next to a ceiling in the
same run on the same machine, because on a noisy machine only the ratio of the two means anything.
"""

from __future__ import annotations

import json
import platform
import statistics
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True)
class Row:
    """One figure and what it is measured against."""

    name: str
    unit: str
    median: float
    low: float
    high: float
    ceiling_name: str = ""
    ceiling_median: float = 0.0

    @property
    def ratio(self) -> float | None:
        return self.median / self.ceiling_median if self.ceiling_median else None


def rate(work: Callable[[], float], repeat: int = 5) -> list[float]:
    """Units per second of `work`, which does it once and returns how many units that was."""
    work()  # warm caches, page in buffers
    rates = []
    for _ in range(repeat):
        start = time.perf_counter()
        units = work()
        rates.append(units / (time.perf_counter() - start))
    return rates


def row(name: str, unit: str, figures: list[float], ceiling: Row | None = None) -> Row:
    return Row(
        name,
        unit,
        statistics.median(figures),
        min(figures),
        max(figures),
        ceiling.name if ceiling else "",
        ceiling.median if ceiling else 0.0,
    )


def as_row(given: Row | dict[str, Any]) -> Row:
    """Suites that also run alone print their own tables and hand their rows over as dicts."""
    if isinstance(given, Row):
        return given
    names = {field.name for field in fields(Row)}
    return Row(**{name: value for name, value in given.items() if name in names and value})


def print_rows(rows: Iterable[Row]) -> None:
    print(f"{'':58} {'median':>10} {'low':>10} {'high':>10}  {'ratio':>6} of ceiling")
    for r in rows:
        ratio = f"{r.ratio:6.2f} {r.ceiling_name}" if r.ratio is not None else ""
        figures = " ".join(f"{value:10,.4g}" for value in (r.median, r.low, r.high))
        print(f"{r.name + ' (' + r.unit + ')':58} {figures}  {ratio}")


def save(suite: str, rows: list[Row]) -> Path:
    """Write the rows as JSON under bench/results, which git ignores."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{suite}.json"
    about = {"machine": platform.machine(), "python": platform.python_version()}
    content = {**about, "rows": [{**asdict(r), "ratio": r.ratio} for r in rows]}
    path.write_text(json.dumps(content, indent=1))
    return path
