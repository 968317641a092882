"""Stored once, in order, exactly what was acknowledged: the numbering against a dumb broker.

The broker here keeps a list. The network loses answers, breaks streams and delivers what was on a
broken stream later or never; a new leader may not have what was not yet acknowledged.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest
from suiro.model.ids import ProducerEpoch, ProducerId, ProducerIdentity, TopicPartition
from suiro.sequences import (
    EPOCH_MAX,
    SEQUENCE_MASK,
    Fate,
    PartitionSequence,
    Sequences,
    Stamp,
    Ticket,
    Verdict,
)

WHERE = TopicPartition("t", 0)
WHO = ProducerIdentity(ProducerId(7), ProducerEpoch(0))


def numbering(identity: ProducerIdentity = WHO, **options: bool) -> PartitionSequence[int]:
    sequences: Sequences[int] = Sequences(**options)
    sequences.identify(identity)
    return sequences.of(WHERE)


def send(line: PartitionSequence[int], batch: int, count: int = 1) -> Ticket[int]:
    ticket = line.take(batch, count)
    line.sent(ticket)
    return ticket


# -- stories --------------------------------------------------------------------------------------


def test_numbers_follow_the_records_and_five_may_be_under_way() -> None:
    line = numbering()
    tickets = [send(line, batch, count=10) for batch in range(5)]
    assert [ticket.stamp for ticket in tickets] == [Stamp(7, 0, 10 * n) for n in range(5)]
    assert not line.may_take()
    assert line.on_verdict(tickets[0], Verdict.STORED) is Fate.STORED
    assert line.may_take()


def test_numbers_wrap() -> None:
    line = numbering()
    line.on_verdict(send(line, 0, count=SEQUENCE_MASK), Verdict.STORED)
    assert send(line, 1, count=3).stamp.base_sequence == SEQUENCE_MASK
    assert send(line, 2).stamp.base_sequence == 2


def test_after_a_failure_all_go_again_from_the_first_once_all_are_answered() -> None:
    line = numbering()
    first, second, third = (send(line, batch) for batch in range(3))
    assert line.on_verdict(first, Verdict.UNKNOWN) is Fate.AGAIN
    assert line.due() is None, "the others are still under way"
    assert not line.may_take()
    assert line.on_verdict(second, Verdict.GAP) is Fate.AGAIN
    assert line.on_verdict(third, Verdict.GAP) is Fate.AGAIN
    stamps = [first.stamp, second.stamp, third.stamp]
    for ticket in (first, second, third):
        assert line.due() is ticket
        assert not line.may_take()
        line.sent(ticket)
    assert [first.stamp, second.stamp, third.stamp] == stamps
    assert line.may_take()


def test_what_was_certainly_not_stored_is_numbered_anew_in_order() -> None:
    """The broker has forgotten the producer (KIP-360)."""
    line = numbering()
    line.on_verdict(send(line, 0), Verdict.STORED)
    first, second = send(line, 1), send(line, 2)
    assert line.on_verdict(first, Verdict.GAP) is Fate.RENUMBERED
    assert line.due() is None
    assert line.on_verdict(second, Verdict.GAP) is Fate.RENUMBERED
    assert line.due() is first
    assert [first.stamp, second.stamp] == [Stamp(7, 1, 0), Stamp(7, 1, 1)]


def test_what_may_be_stored_is_never_sent_as_new() -> None:
    line = numbering()
    line.on_verdict(send(line, 0), Verdict.STORED)
    ticket = send(line, 1)
    assert line.on_verdict(ticket, Verdict.UNKNOWN) is Fate.AGAIN
    line.sent(ticket)
    assert line.on_verdict(ticket, Verdict.GAP) is Fate.FAILED
    assert send(line, 2).stamp == Stamp(7, 1, 0)


def test_after_an_expired_batch_the_numbering_waits_for_the_rest() -> None:
    line = numbering()
    first, second = send(line, 0), send(line, 1)
    line.expire(first)
    assert line.on_verdict(first, Verdict.UNKNOWN) is Fate.DROPPED
    assert not line.may_take(), "the second one is numbered the old way"
    assert line.on_verdict(second, Verdict.STORED) is Fate.STORED
    assert send(line, 2).stamp == Stamp(7, 1, 0)


def test_an_expired_batch_that_turns_out_stored_leaves_no_gap() -> None:
    line = numbering()
    first = send(line, 0)
    line.expire(first)
    assert line.on_verdict(first, Verdict.STORED) is Fate.DROPPED
    assert send(line, 1).stamp == Stamp(7, 0, 1)


def test_a_batch_that_cannot_be_made_gives_its_number_back() -> None:
    line = numbering()
    line.withdraw(line.take(0, 5))
    assert send(line, 1).stamp == Stamp(7, 0, 0)


def test_the_last_epoch_is_followed_by_another_producer_id() -> None:
    line = numbering(ProducerIdentity(ProducerId(7), ProducerEpoch(EPOCH_MAX)))
    assert line.on_verdict(send(line, 0), Verdict.GAP) is Fate.RENUMBERED
    assert line.owner.wants_identity
    assert line.due() is None
    assert not line.may_take()
    line.owner.identify(ProducerIdentity(ProducerId(8), ProducerEpoch(0)))
    again = line.due()
    assert again is not None
    assert again.stamp == Stamp(8, 0, 0)


def test_a_transaction_has_its_epochs_from_the_coordinator() -> None:
    line = numbering(own_epochs=False)
    line.on_verdict(send(line, 0), Verdict.STORED)
    line.owner.identify(ProducerIdentity(ProducerId(7), ProducerEpoch(1)))
    assert send(line, 1).stamp == Stamp(7, 1, 0)
    assert line.on_verdict(line.unresolved[0], Verdict.REFUSED) is Fate.FAILED
    assert line.owner.wants_identity


def test_a_transaction_does_not_go_on_with_the_numbers_of_the_aborted_one() -> None:
    line = numbering(own_epochs=False)
    aborted = send(line, 0)
    line.expire(aborted)  # the abort does not wait for it
    line.owner.identify(ProducerIdentity(ProducerId(7), ProducerEpoch(1)))
    assert not line.may_take(), "it would be numbered under the epoch that is over"
    assert line.on_verdict(aborted, Verdict.REFUSED) is Fate.DROPPED
    assert send(line, 1).stamp == Stamp(7, 1, 0)


def test_without_idempotence_order_is_kept_and_nothing_is_numbered() -> None:
    line: PartitionSequence[int] = Sequences[int](numbered=False).of(WHERE)
    first, second = send(line, 0), send(line, 1)
    assert first.stamp.producer_id == -1
    assert line.on_verdict(first, Verdict.UNKNOWN) is Fate.AGAIN
    assert line.on_verdict(second, Verdict.UNKNOWN) is Fate.AGAIN
    assert line.due() is first


# -- the dumb broker ------------------------------------------------------------------------------


@dataclass
class Stored:
    stamp: Stamp
    values: list[int]


@dataclass
class Broker:
    """A list of batches; what is below `committed` outlives every leader."""

    log: list[Stored] = field(default_factory=list)
    committed: int = 0
    forgot: int = 0
    """Batches before this are in the log, but no longer remembered."""

    def append(self, stamp: Stamp, values: list[int]) -> Verdict:
        known = self.log[self.forgot :]
        for batch in known[-5:]:
            if batch.stamp == stamp:
                return Verdict.STORED
        if self._expects(stamp, known):
            self.log.append(Stored(stamp, values))
            return Verdict.STORED
        return Verdict.GAP

    def _expects(self, stamp: Stamp, known: list[Stored]) -> bool:
        if not known or stamp.producer_epoch > known[-1].stamp.producer_epoch:
            return stamp.base_sequence == 0
        last = known[-1]
        following = last.stamp.base_sequence + len(last.values)
        return stamp == last.stamp._replace(base_sequence=following)

    def fail_over(self, dice: Random) -> None:
        """The next leader has what was committed, and perhaps more."""
        del self.log[dice.randint(self.committed, len(self.log)) :]
        self.forgot = min(self.forgot, len(self.log))


@dataclass
class Request:
    ticket: Ticket[int]
    stamp: Stamp
    values: list[int]
    verdict: Verdict | None = None


@dataclass
class World:
    """One producer, one partition; `stream` is the living one, the others are broken."""

    dice: Random
    expiry: bool
    forgetful: bool
    line: PartitionSequence[int] = field(default_factory=numbering)
    broker: Broker = field(default_factory=Broker)
    stream: list[Request] = field(default_factory=list)
    broken: list[list[Request]] = field(default_factory=list)
    finishing: bool = False
    handed_in: int = 0
    acked: set[int] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)

    def step(self) -> None:
        moves = [self.send, self.send, self.deliver, self.deliver, self.answer, self.answer]
        moves += [self.break_stream, self.deliver_late, self.fail_over]
        if self.expiry:
            moves.append(self.expire)
        if self.forgetful:
            moves.append(self.forget)
        self.dice.choice(moves)()

    def send(self) -> None:
        ticket = self.line.due()
        if ticket is None:
            if self.finishing or not self.line.may_take():
                return
            ticket = self.line.take(self.handed_in, self.dice.randint(1, 3))
            self.handed_in += 1
        self.line.sent(ticket)
        values = [ticket.batch * 10 + n for n in range(ticket.count)]
        self.stream.append(Request(ticket, ticket.stamp, values))

    def deliver(self) -> None:
        waiting = [request for request in self.stream if request.verdict is None]
        if waiting:
            waiting[0].verdict = self.broker.append(waiting[0].stamp, waiting[0].values)

    def answer(self) -> None:
        if self.stream and self.stream[0].verdict is not None:
            request = self.stream.pop(0)
            if request.verdict is Verdict.STORED:
                if not any(batch.stamp == request.stamp for batch in self.broker.log):
                    request.verdict = Verdict.UNKNOWN  # its leader is gone, and so is the batch
                else:
                    self.broker.committed = len(self.broker.log)
            self.conclude(request.ticket, request.verdict)

    def conclude(self, ticket: Ticket[int], verdict: Verdict | None) -> None:
        assert verdict is not None
        fate = self.line.on_verdict(ticket, verdict)
        if fate is Fate.STORED:
            self.acked.add(ticket.batch)
        elif fate is Fate.FAILED:
            self.failed.add(ticket.batch)

    def break_stream(self) -> None:
        if self.dice.random() < 0.4:
            stream, self.stream = self.stream, []
            self.broken.append([request for request in stream if request.verdict is None])
            for request in stream:
                self.conclude(request.ticket, Verdict.UNKNOWN)

    def deliver_late(self) -> None:
        """Something of a stream that the producer has given up."""
        self.broken = [stream for stream in self.broken if stream]
        if self.broken:
            request = self.dice.choice(self.broken).pop(0)
            self.broker.append(request.stamp, request.values)

    def fail_over(self) -> None:
        if self.dice.random() < 0.2:
            self.broker.fail_over(self.dice)

    def expire(self) -> None:
        tickets = self.line.tickets()
        if tickets and self.dice.random() < 0.3 and not tickets[0].expired:
            self.line.expire(tickets[0])
            self.failed.add(tickets[0].batch)

    def forget(self) -> None:
        """The broker has not heard of the producer for days: nothing of it is on its way."""
        if not self.stream and not any(self.broken) and not self.line.tickets():
            self.broker.forgot = len(self.broker.log)

    def finish(self) -> None:
        self.finishing = True
        while self.line.tickets():
            self.send()
            self.deliver()
            self.answer()

    def check(self) -> None:
        values = [value for batch in self.broker.log for value in batch.values]
        assert len(values) == len(set(values)), "stored twice"
        assert values == sorted(values), "out of order"
        stored = {value // 10 for value in values}
        assert self.acked <= stored, "acknowledged and not stored"


@pytest.mark.parametrize("expiry", [False, True])
@pytest.mark.parametrize("forgetful", [False, True])
def test_once_in_order_whatever_the_network_does(expiry: bool, forgetful: bool) -> None:
    seen = 0
    for seed in range(500):
        world = World(Random(seed), expiry, forgetful)
        for _ in range(80):
            world.step()
            world.check()
        world.finish()
        world.check()
        if not expiry and not forgetful:
            assert not world.failed, f"seed {seed}: nothing had to be given up"
        assert world.acked | world.failed == set(range(world.handed_in)), f"seed {seed}"
        seen += len(world.acked)
    assert seen > 1_500
