"""Planted bugs of transactions: the bugs of others in RELIABILITY.md, rows 10 to 23 and 34.

Where two checks guard the same promise a mutant takes both away: each alone would be invisible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suiro import transaction

from cluster.broker import txn_verify, visible
from cluster.log import producers
from cluster.log.aborted import AbortedIndex
from cluster.log.producers import ProducerStates
from cluster.log.state import LogState
from cluster.txncoord import end, expire, init, partitions, shared, table
from cluster.txncoord.machine import TxnMachine
from cluster.txncoord.table import TxnTable
from tests.mutants.registry import Edit, Mutant

if TYPE_CHECKING:
    from collections.abc import Callable


def _one(name: str, breaks: str, function: Callable[..., Any], before: str, after: str) -> Mutant:
    return Mutant(name, breaks, (Edit(function, before, after),))


TXN_MUTANTS: tuple[Mutant, ...] = (
    _one(
        "row 10: a retry is taken for a new batch",
        "P3",
        producers.check_batch,
        "if sent[:2] == (header.base_sequence, header.last_sequence):",
        "if False:",
    ),
    _one(
        "row 10: a gap in the sequence is let through",
        "P3",
        producers.check_batch,
        "    for sent in state.sent:\n"
        "            if sent[:2] == (header.base_sequence, header.last_sequence):\n"
        "                return Duplicate(Offset(sent.base_offset), Offset(sent.end))\n"
        "    _check_transaction(state, header)\n",
        "    return FRESH\n    _check_transaction(state, header)\n",
    ),
    _one(
        "row 11: a snapshot forgets what was sent",
        "I2",
        ProducerStates.encode,
        "len(state.sent),",
        "0,",
    ),
    _one(
        "row 13: the offsets of a transaction get no marker",
        "T7",
        table.markers_of,
        "Places(w.partitions, w.groups)",
        "Places(w.partitions)",
    ),
    _one(
        "row 15: a transaction that was decided is not finished after a take-over",
        "T6",
        TxnMachine.open_work,
        "for name in sorted(txns) for",
        "for name in sorted(txns) if False for",
    ),
    _one(
        "row 15: a transaction never expires",
        "T6",
        expire.expire,
        "txn.expires_ms <= now_ms",
        "False",
    ),
    _one(
        "row 15: a place that did not answer is taken for done",
        "T6",
        end.marked,
        "if left:",
        "if False:",
    ),
    _one(
        "row 16: aborted ranges are lost when the log is cut at its start",
        "T11",
        AbortedIndex.overlapping,
        "if aborted.stable >= end:",
        "if aborted.stable >= start:",
    ),
    _one(
        "row 18: an end decides whatever is open",
        "T5",
        end.end,
        "if identity == txn.identity == txn.holder:",
        "if identity.producer_id == txn.identity.producer_id and txn.state not in DECIDED:",
    ),
    _one(
        "row 18: the epoch does not rise at the end",
        "T5",
        table.ended,
        "identity = successor = holder = table.next_identity(txn.identity)",
        "identity = successor = holder = txn.identity",
    ),
    _one(
        "row 18: a repeated end gets the opposite of what was decided",
        "T5",
        end.end,
        "if last.commit != commit:",
        "if False:",
    ),
    _one(
        "row 18: a transaction that wrote nowhere keeps its epoch",
        "T5",
        end.end,
        "    txn = table.known(transactional_id)\n",
        "    txn = table.known(transactional_id)\n"
        "    if identity == txn.holder and txn.state is TxnState.EMPTY:\n"
        "        return Decision((), identity)\n",
    ),
    _one(
        "row 19: a broker lets a transaction in without asking",
        "T6",
        txn_verify.opens_transaction,
        "if not header.is_transactional:",
        "if True:",
    ),
    _one(
        "row 19: the coordinator says yes to whatever is asked",
        "T6",
        partitions.verify,
        "    writer = txn.writer(identity)\n",
        "    return Decision((), None)\n",
    ),
    _one(
        "row 19: it says yes to a partition that is not registered",
        "T6",
        partitions.verify,
        "if missing:",
        "if False:",
    ),
    _one(
        "row 20: the next transaction begins while the last one's markers are under way",
        "T4",
        partitions._plain_writer,
        "if txn.state in DECIDED:",
        "if False:",
    ),
    _one(
        "row 20: the epochs run out and the producer id stays",
        "I1",
        TxnTable.next_identity,
        "if identity.producer_epoch + 2 <= self.limits.epoch_max and identity != NOBODY:",
        "if identity != NOBODY:",
    ),
    _one(
        "row 20: no epoch is left for the last marker",
        "I1",
        TxnTable.next_identity,
        "identity.producer_epoch + 2 <=",
        "identity.producer_epoch + 1 <=",
    ),
    _one(
        "row 20: a roll gives the answer of the old producer id",
        "T5",
        table.ended,
        "identity = successor = holder = table.next_identity(txn.identity)",
        "identity = holder = table.next_identity(txn.identity); successor = after(txn.identity)",
    ),
    _one(
        "row 20: a late marker ends the transaction of its own epoch",
        "T5",
        ProducerStates.check_marker,
        "if same and state.open_from == NO_OFFSET and state.marker_at != NO_OFFSET:",
        "if same and state.open_from != NO_OFFSET:\n        return FRESH\n    if same:",
    ),
    _one(
        "row 21: visible when the marker is written, not when it is committed",
        "T3",
        ProducerStates.last_stable_offset,
        "if d.marker_at >= high_watermark",
        "if False",
    ),
    _one(
        "row 22: the aborted ranges are left out of an answer",
        "T1",
        visible._is_aborted,
        "return header.is_transactional and any(",
        "return False and any(",
    ),
    _one(
        "row 22: an abort leaves no range",
        "T1",
        LogState.apply,
        "marker is ControlType.ABORT",
        "marker is ControlType.COMMIT",
    ),
    Mutant(
        "row 23: a batch leaves before its partition is registered",
        "T6",
        (
            Edit(
                transaction.Transaction.may_write,
                "return self.state is State.OPEN and place in self._registered",
                "return self.state is State.OPEN",
            ),
            Edit(
                transaction.Transaction.write_to,
                "if place not in self._registered:",
                "if not self._asked:",
            ),
            Edit(txn_verify.opens_transaction, "if not header.is_transactional:", "if True:"),
        ),
    ),
    _one(
        "row 34: a decision times out",
        "T4",
        expire.expire,
        "if txn.state is TxnState.ONGOING and",
        "if txn.writers and",
    ),
    _one(
        "row 34: taking an id aborts what was decided",
        "T4",
        init.init,
        "if txn.state is TxnState.ONGOING:",
        "if txn.writers:",
    ),
    _one(
        "an instance that was fenced goes on",
        "I1",
        init._holds,
        "if identity == txn.holder:",
        "if True:",
    ),
    _one(
        "taking an id does not raise its epoch",
        "I1",
        init.init,
        "identity = table.next_identity(txn.identity)",
        "identity = txn.identity",
    ),
    _one(
        "a fenced instance still registers partitions",
        "I1",
        partitions._check_holder,
        "if not identity == txn.identity == txn.holder:",
        "if False:",
    ),
    _one(
        "the answer to an end is another instance's identity",
        "I1",
        end.end,
        "return Decision((), last.successor)",
        "return Decision((), txn.identity)",
    ),
    _one(
        "a shared commit counts every writer",
        "C4",
        table._decided,
        "(not txn.is_shared or writer.identity.producer_id in how.counted)",
        "True",
    ),
    _one(
        "a shared commit is not remembered",
        "C4",
        shared._decide,
        "ended(table, txn, how, committed_sequence=request.sequence)",
        "ended(table, txn, how)",
    ),
    _one(
        "an attempt that was ended comes back",
        "L1",
        shared._check_attempt,
        "if attempt in txn.over:",
        "if False:",
    ),
    _one(
        "a writer that is not done counts",
        "C4",
        shared._decide,
        "for w in txn.writers if w.prepared",
        "for w in txn.writers",
    ),
    _one(
        "an abort undoes a shared commit",
        "C4",
        shared.end,
        "if txn is not None and is_committed(txn, request.sequence):",
        "if txn is not None and request.commit and is_committed(txn, request.sequence):",
    ),
    _one(
        "a client turns a lost commit into an abort",
        "T5",
        transaction.Transaction.next_step,
        "commit=self.state is State.COMMITTING",
        "commit=False",
    ),
    Mutant(
        "a client keeps its identity when the coordinator ended its transaction",
        "L1",
        (
            Edit(
                transaction.Transaction._lose,
                "self._renews = self._renews or isinstance(error, _LOST)",
                "pass",
            ),
            Edit(transaction.Transaction._lose, "self._renews = True", "pass"),
        ),
    ),
)

CANARY = Mutant(
    "canary: the same comparison, written otherwise",
    "nothing",
    (Edit(end.marked, "if left:", "if len(left) > 0:"),),
)
