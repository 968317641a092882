"""A producer takes a transactional id: its epoch rises, and whoever had it before is fenced (I1).

What the former holder left open is aborted first; until the abort is complete the answer is
`Completing`, and the question is to be asked again. A producer that shows the identity it has goes
on with the next one and fences nobody; if somebody else has taken the id meanwhile, it is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from suiro.model.errors import InvalidRequest
from suiro.model.ids import SHARED_PREFIX

from cluster.host.machine import Decision
from cluster.txncoord.requests import Completing, Init
from cluster.txncoord.table import Ending, born, ended, markers_of, moved, refusal
from cluster.txncoord.txn import DECIDED, NOBODY, EndedBy, Txn, TxnState

if TYPE_CHECKING:
    from suiro.model.ids import ProducerIdentity

    from cluster.txncoord.table import TxnTable


def init(table: TxnTable, request: Init, now_ms: int) -> Decision[ProducerIdentity | Completing]:
    _check(table, request)
    txn = table.txns.get(request.transactional_id)
    if txn is None:
        return _first(table, request, now_ms)
    goes_on = request.go_on != NOBODY
    if goes_on:
        if request.go_on == txn.came_from and txn.identity == txn.holder:
            return Decision((), txn.identity)  # the answer to this question was lost
        if not _holds(txn, request.go_on):
            raise refusal(txn, request.go_on)
    if txn.state is TxnState.ONGOING:
        return _abort(table, txn, request, now_ms)
    if txn.state in DECIDED:
        return Decision((), Completing())
    identity = table.next_identity(txn.identity)
    taken = moved(
        txn,
        state=TxnState.EMPTY,
        changed_ms=now_ms,
        timeout_ms=request.timeout_ms,
        identity=identity,
        holder=identity,
        came_from=request.go_on,
        client=request.client,
        fenced_by=txn.fenced_by if goes_on else request.client,
        fenced_ms=txn.fenced_ms if goes_on else now_ms,
    )
    return Decision((taken,), identity)


def _holds(txn: Txn, identity: ProducerIdentity) -> bool:
    """Nobody else has had the id since. Its producer may have missed the answer to its last end."""
    if identity == txn.holder:
        return True
    last = txn.ended
    missed = last is not None and last.identity == identity and last.successor == txn.holder
    return missed and txn.holder != NOBODY


def _check(table: TxnTable, request: Init) -> None:
    if not request.transactional_id:
        raise InvalidRequest("a transaction needs a transactional id")
    if request.transactional_id.startswith(SHARED_PREFIX):
        raise InvalidRequest(f"ids that begin with {SHARED_PREFIX!r} are for shared transactions")
    if not 0 < request.timeout_ms <= table.limits.timeout_ms_max:
        raise InvalidRequest(
            f"a transaction timeout of {request.timeout_ms} ms; "
            f"1 to {table.limits.timeout_ms_max} are allowed"
        )


def _first(table: TxnTable, request: Init, now_ms: int) -> Decision[ProducerIdentity | Completing]:
    """Also for one that goes on with an id forgotten for long disuse: nothing of it is open."""
    identity = table.first_identity()
    taken = Txn(
        transactional_id=request.transactional_id,
        state=TxnState.EMPTY,
        changed_ms=now_ms,
        timeout_ms=request.timeout_ms,
        identity=identity,
        holder=identity,
        came_from=request.go_on,
        client=request.client,
    )
    return Decision((born(taken),), identity)


def _abort(
    table: TxnTable, txn: Txn, request: Init, now_ms: int
) -> Decision[ProducerIdentity | Completing]:
    """Its holder is gone, or does not know any more what it has done and begins anew."""
    if request.go_on != NOBODY:
        record = ended(table, txn, Ending(EndedBy.RESTARTED, request.client, now_ms))
    else:
        how = Ending(EndedBy.FENCED, request.client, now_ms)
        record = ended(table, txn, how, fenced_by=request.client, fenced_ms=now_ms)
    return Decision((record,), Completing(), markers_of(record.txn))
