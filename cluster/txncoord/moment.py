"""A moment, as people read it."""

from __future__ import annotations

from datetime import UTC, datetime


def at_time(time_ms: int) -> str:
    """`at 2026-11-18 12:00:00.000 UTC`."""
    seconds, rest_ms = divmod(time_ms, 1000)
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"at {moment:%Y-%m-%d %H:%M:%S}.{rest_ms:03} UTC"
