"""Suiro on asyncio: the clients themselves. `import suiro` gives the same for ordinary threads."""

from __future__ import annotations

from suiro.aio.admin import Admin
from suiro.aio.consumer import Consumer
from suiro.aio.exactly_once import ExactlyOnce
from suiro.aio.offsets import Bound
from suiro.aio.producer import Producer
from suiro.aio.shared import Outcome, SharedBatch, SharedTransactions, SharedWriter

__all__ = [
    "Admin",
    "Bound",
    "Consumer",
    "ExactlyOnce",
    "Outcome",
    "Producer",
    "SharedBatch",
    "SharedTransactions",
    "SharedWriter",
]
