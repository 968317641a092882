"""What time it is: `Clock`, and the machine's own, `SystemClock`.

Nobody waits on a clock. Waiting goes through the event loop (`asyncio.sleep`, `loop.call_later`,
`asyncio.timeout`), so a loop with virtual time controls it; a clock only answers. Wall time is for
timestamps that people and other machines read and may jump; deadlines and durations are monotonic.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Two readings of the time, neither of which ever blocks."""

    def now_ms(self) -> int:
        """Milliseconds since 1970; it may jump in both directions."""

    def monotonic_ms(self) -> float:
        """Milliseconds since some unknown moment; it never goes back."""


class SystemClock:
    """The clocks of the operating system."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        return time.monotonic_ns() / 1e6
