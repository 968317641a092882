"""The wall clock of a client, for the timestamps of records; deadlines use the loop's clock."""

from __future__ import annotations

import time


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000
