"""Suiro: a distributed commit log with a columnar, Arrow-native heart.

`Producer`, `Consumer` and `Admin` are for ordinary threads; `suiro.aio` has the same on asyncio.
Every error is a `SuiroError`; `suiro.errors` has the whole tree.

The names are imported when they are first used: a node imports `suiro.model` and should not pay for
the clients, nor a client for what it does not use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from suiro import version

__version__ = version.VERSION

if TYPE_CHECKING:
    from suiro.admin import Admin
    from suiro.aio.offsets import Bound
    from suiro.aio.shared import Outcome, SharedBatch
    from suiro.consumer import Consumer
    from suiro.exactly_once import ExactlyOnce
    from suiro.handle import RecordMetadata, Sent, SentMany
    from suiro.model import errors
    from suiro.model.batch import Compression
    from suiro.model.error_base import SuiroError
    from suiro.model.ids import TopicPartition
    from suiro.model.record import Record
    from suiro.polled import Polled
    from suiro.producer import Producer
    from suiro.settings import ConsumerSettings, ProducerSettings
    from suiro.shared import SharedTransactions, SharedWriter

__all__ = [
    "Admin",
    "Bound",
    "Compression",
    "Consumer",
    "ConsumerSettings",
    "ExactlyOnce",
    "Outcome",
    "Polled",
    "Producer",
    "ProducerSettings",
    "Record",
    "RecordMetadata",
    "Sent",
    "SentMany",
    "SharedBatch",
    "SharedTransactions",
    "SharedWriter",
    "SuiroError",
    "TopicPartition",
    "__version__",
    "errors",
]

_HOME = {
    "Admin": "suiro.admin",
    "Bound": "suiro.aio.offsets",
    "Compression": "suiro.model.batch",
    "Consumer": "suiro.consumer",
    "ConsumerSettings": "suiro.settings",
    "ExactlyOnce": "suiro.exactly_once",
    "Outcome": "suiro.aio.shared",
    "Polled": "suiro.polled",
    "Producer": "suiro.producer",
    "ProducerSettings": "suiro.settings",
    "Record": "suiro.model.record",
    "RecordMetadata": "suiro.handle",
    "Sent": "suiro.handle",
    "SentMany": "suiro.handle",
    "SharedBatch": "suiro.aio.shared",
    "SharedTransactions": "suiro.shared",
    "SharedWriter": "suiro.shared",
    "SuiroError": "suiro.model.error_base",
    "TopicPartition": "suiro.model.ids",
}


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module("suiro.model.errors")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'suiro' has no attribute {name!r}")
