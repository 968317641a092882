"""Time: a transaction that is open for too long is aborted, an id long unused is forgotten.

Only what is ongoing can time out: a decision, once made, is carried out however long it takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cluster.host.machine import Decision
from cluster.txncoord.end import over_after
from cluster.txncoord.records import TxnForgotten
from cluster.txncoord.table import Ending, ended, markers_of
from cluster.txncoord.txn import LEGAL, EndedBy, TxnState

if TYPE_CHECKING:
    from cluster.txncoord.table import TxnTable

_FORGETTABLE = frozenset(state for state, after in LEGAL.items() if TxnState.DEAD in after)


def expire(table: TxnTable, now_ms: int) -> Decision[int]:
    """Abort what has been open for longer than its timeout; replies how many that were."""
    records = []
    for transactional_id in sorted(table.txns):
        txn = table.txns[transactional_id]
        if txn.state is TxnState.ONGOING and txn.expires_ms <= now_ms:
            reason = f"open for longer than its timeout of {txn.timeout_ms} ms"
            how = Ending(EndedBy.TIMEOUT, reason, now_ms)
            records.append(ended(table, txn, how, over=over_after(table, txn)))
    effects = tuple(effect for record in records for effect in markers_of(record.txn))
    return Decision(tuple(records), len(records), effects)


def forget(table: TxnTable, now_ms: int) -> Decision[int]:
    """Drop the ids at rest that nobody has used for long; replies how many."""
    limits = table.limits
    records = []
    for transactional_id in sorted(table.txns):
        txn = table.txns[transactional_id]
        kept_ms = limits.token_retention_ms if txn.is_shared else limits.id_retention_ms
        if txn.state in _FORGETTABLE and txn.changed_ms + kept_ms <= now_ms:
            records.append(TxnForgotten(transactional_id))
    return Decision(tuple(records), len(records))
