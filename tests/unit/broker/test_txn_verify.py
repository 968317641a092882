"""When a broker asks the coordinator, and what a refusal stops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suiro.model.errors import InvalidRequest, InvalidTransaction
from suiro.model.ids import ProducerEpoch, ProducerId, ProducerIdentity, TopicPartition

from cluster.broker.txn_verify import ArrivedPart, TxnVerifier, openings, opens_transaction
from cluster.log.producers import ProducerStates
from tests.unit.log.kit import batch, header_of, marker

if TYPE_CHECKING:
    from collections.abc import Sequence

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
WHO = ProducerIdentity(ProducerId(1), ProducerEpoch(0))


def states_after(*batches: bytes) -> ProducerStates:
    states = ProducerStates()
    for offset, data in enumerate(batches):
        header = header_of(data, offset)
        if header.is_control:
            states.apply_marker(header, 0)
        else:
            states.apply(header, 0)
    return states


def sent(epoch: int = 0, sequence: int = 0, *, transactional: bool = True) -> bytes:
    return batch(producer=(1, epoch, sequence), transactional=transactional)


def opens(states: ProducerStates, data: bytes) -> bool:
    return opens_transaction(states.get(1), header_of(data))


def test_only_what_would_open_a_transaction_is_asked_for() -> None:
    nothing, open_one = states_after(), states_after(sent())
    ended = states_after(sent(), marker(1, 1, commit=True))
    assert opens(nothing, sent())
    assert not opens(nothing, sent(transactional=False))
    assert not opens(open_one, sent(sequence=1))
    assert opens(ended, sent(epoch=1))
    assert not opens(ended, sent(epoch=0)), "the log refuses it by itself"
    assert not opens(open_one, sent(epoch=1)), "the log lets it wait for the marker"


def test_one_question_per_producer() -> None:
    other = batch(producer=(2, 0, 0), transactional=True)
    parts = [
        ArrivedPart(A, ProducerStates(), sent() + sent(sequence=1) + other),
        ArrivedPart(B, ProducerStates(), sent()),
        ArrivedPart(TopicPartition("u", 0), states_after(sent()), sent(sequence=1)),
    ]
    two = ProducerIdentity(ProducerId(2), ProducerEpoch(0))
    assert openings(parts) == {WHO: [A, B], two: [A]}


async def test_a_refusal_stops_the_parts_that_were_asked_for() -> None:
    asked = []

    async def ask(name: str, who: ProducerIdentity, partitions: Sequence[TopicPartition]) -> None:
        asked.append((name, who, list(partitions)))
        raise InvalidTransaction("not registered")

    plain = batch(producer=(3, 0, 0))
    parts = [ArrivedPart(A, ProducerStates(), sent()), ArrivedPart(B, ProducerStates(), plain)]
    refused = await TxnVerifier(ask).refusals("id", parts)
    assert list(refused) == [A]
    assert asked == [("id", WHO, [A])]
    assert isinstance((await TxnVerifier(ask).refusals("", parts))[A], InvalidRequest)
    assert len(asked) == 1


async def test_a_yes_lets_everything_through() -> None:
    async def ask(_name: str, _who: object, _partitions: object) -> None:
        return

    parts = [ArrivedPart(A, ProducerStates(), sent())]
    assert await TxnVerifier(ask).refusals("id", parts) == {}
