"""A bar on standard error for long work, where somebody looks; silence in a file or a pipe."""

from __future__ import annotations

import sys
from typing import Self

WIDTH = 30


class Progress:
    """`with Progress("copied", 100) as progress: progress.show(7, "3.1 MB/s")`."""

    def __init__(self, what: str, total: int) -> None:
        self._what = what
        self._total = total
        self._is_watched = sys.stderr.isatty()

    def show(self, done: int, note: str = "") -> None:
        if self._is_watched:
            print("\r" + bar(self._what, done, self._total, note), end="\x1b[K", file=sys.stderr)  # noqa: T201
            sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_watched:
            print(file=sys.stderr)  # noqa: T201 - the line is done


def bar(what: str, done: int, total: int, note: str = "") -> str:
    """`drained [#######-------] 3/6 1.2 MB left`."""
    full = WIDTH if total <= 0 else WIDTH * min(done, total) // total
    return f"{what} [{'#' * full}{'-' * (WIDTH - full)}] {done}/{total} {note}".rstrip()
