"""The wall clock of a client, for the timestamps of records; deadlines use the loop's clock."""

from __future__ import annotations

import time


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


wall_clock_ns = time.time_ns
"""For who takes the time once per record: a C function, and nothing around it."""
