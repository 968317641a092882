"""The records of `__transaction_state`: each holds the whole new state under its key.

So the newest record of every key is enough to rebuild the machine, and the topic is compacted. The
records of one decision are appended as one batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cluster.txncoord.txn import Txn


@dataclass(frozen=True, slots=True)
class TxnChanged:
    """What is known of a transactional id from here on."""

    txn: Txn


@dataclass(frozen=True, slots=True)
class TxnForgotten:
    """The id has not been used for long: a tombstone."""

    transactional_id: str


TxnRecord = TxnChanged | TxnForgotten
