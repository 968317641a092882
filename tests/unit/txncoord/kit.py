"""A coordinator's machine that carries its own decisions out, and short names for what it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from suiro.model.ids import ProducerEpoch, ProducerId, ProducerIdentity, TopicPartition

from cluster.txncoord.machine import TxnMachine
from cluster.txncoord.requests import Init, Marked, Places
from cluster.txncoord.table import TxnLimits
from cluster.txncoord.txn import NOBODY

if TYPE_CHECKING:
    from cluster.host.machine import Decision
    from cluster.txncoord.requests import Completing

R = TypeVar("R")

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
IN_T0, IN_BOTH = Places((T0,)), Places((T0, T1))
TIMEOUT_MS = 1000


def identity(producer_id: int, epoch: int) -> ProducerIdentity:
    return ProducerIdentity(ProducerId(producer_id), ProducerEpoch(epoch))


class Coordinator:
    """`do` applies a decision and returns its reply."""

    def __init__(self, epoch_max: int = 100) -> None:
        self.machine = TxnMachine(TxnLimits(epoch_max=epoch_max))
        self.machine.on_producer_ids(ProducerId(1), ProducerId(100))

    def do(self, decision: Decision[R]) -> R:
        for record in decision.records:
            self.machine.apply(record)
        return decision.reply

    def init(
        self, name: str = "id", *, go_on: ProducerIdentity = NOBODY, now_ms: int = 0
    ) -> ProducerIdentity | Completing:
        request = Init(name, TIMEOUT_MS, "me", go_on)
        return self.do(self.machine.decide_init(request, now_ms))

    def add(self, who: ProducerIdentity, places: Places = IN_T0, now_ms: int = 0) -> None:
        self.do(self.machine.decide_add("id", who, places, now_ms))

    def end(self, who: ProducerIdentity, *, commit: bool = True) -> ProducerIdentity:
        return self.do(self.machine.decide_end("id", who, commit=commit, now_ms=0))

    def marked(self, marker: ProducerIdentity, places: Places = IN_T0, name: str = "id") -> bool:
        return self.do(self.machine.decide_marked(name, [Marked(marker, places)], 0))
