"""Versions: of this software, and of the protocol it speaks."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
SOFTWARE: Final = f"suiro-python/{VERSION}"
PROTOCOL_MIN: Final = 1
PROTOCOL_MAX: Final = 1
