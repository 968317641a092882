"""What a partition remembers of its producers: the rules one by one, and against a dumb twin."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from suiro.model.batch import read_header
from suiro.model.control import ControlType, decode_marker
from suiro.model.error_base import SuiroError
from suiro.model.errors import (
    ConcurrentTransaction,
    InvalidTransaction,
    OutOfOrderSequence,
    ProducerFenced,
    UnknownProducer,
)
from suiro.model.ids import Offset

from cluster.log.producers import Duplicate, Fresh, ProducerStates
from cluster.log.state import LogState, decode_state
from tests.unit.log.kit import Implied, aborted_of, batch, header_of, marker, producers_of, stored

LAST = 0x7FFF_FFFF


def send(
    states: ProducerStates,
    offset: int,
    producer: tuple[int, int, int],
    count: int = 1,
    *,
    transactional: bool = False,
) -> None:
    """Check and append one batch."""
    raw = batch(count, producer=producer, transactional=transactional)
    assert states.check(header_of(raw)) == Fresh()
    states.apply(header_of(raw, offset), 0)


def check(
    states: ProducerStates,
    producer: tuple[int, int, int],
    count: int = 1,
    *,
    transactional: bool = False,
) -> Fresh | Duplicate:
    return states.check(header_of(batch(count, producer=producer, transactional=transactional)))


def end(states: ProducerStates, offset: int, producer_id: int, epoch: int) -> None:
    """Append a marker."""
    raw = marker(producer_id, epoch, commit=True)
    assert states.check_marker(header_of(raw)) == Fresh()
    states.apply_marker(header_of(raw, offset), 0)


def test_a_retry_of_one_of_the_last_five_gets_its_first_answer() -> None:
    states = ProducerStates()
    for number in range(7):
        send(states, 100 + 3 * number, (1, 0, 3 * number), 3)
    for number in range(2, 7):
        first = Offset(100 + 3 * number)
        assert check(states, (1, 0, 3 * number), 3) == Duplicate(first, Offset(first + 3))
    with pytest.raises(OutOfOrderSequence):
        check(states, (1, 0, 3), 3)  # too old to be remembered, and certainly not new


def test_a_part_of_a_batch_is_no_retry() -> None:
    states = ProducerStates()
    send(states, 0, (1, 0, 0), 4)
    with pytest.raises(OutOfOrderSequence):
        check(states, (1, 0, 0), 3)
    with pytest.raises(OutOfOrderSequence):
        check(states, (1, 0, 2), 2)


def test_a_gap_says_what_was_expected() -> None:
    states = ProducerStates()
    send(states, 0, (1, 0, 0), 4)
    with pytest.raises(OutOfOrderSequence) as refused:
        check(states, (1, 0, 5))
    assert refused.value.hints == {"expected": 4}


def test_sequences_wrap() -> None:
    states = ProducerStates()
    send(states, 0, (1, 0, 0))
    states.apply(header_of(batch(2, producer=(1, 0, LAST - 1)), 1), 0)  # as if 2^31 were written
    assert check(states, (1, 0, LAST - 1), 2) == Duplicate(Offset(1), Offset(3))
    send(states, 3, (1, 0, 0), 5)
    wrapped = ProducerStates()
    wrapped.apply(header_of(batch(4, producer=(1, 0, LAST - 1)), 10), 0)
    assert check(wrapped, (1, 0, LAST - 1), 4) == Duplicate(Offset(10), Offset(14))
    assert check(wrapped, (1, 0, 2)) == Fresh()


def test_a_new_epoch_begins_at_zero_and_fences_the_old() -> None:
    states = ProducerStates()
    send(states, 0, (1, 0, 0))
    with pytest.raises(OutOfOrderSequence):
        check(states, (1, 1, 1))
    send(states, 1, (1, 1, 0))
    with pytest.raises(ProducerFenced):
        check(states, (1, 0, 1))
    with pytest.raises(ProducerFenced):
        check(states, (1, 0, 0))  # not even as a retry: I1


def test_an_unknown_producer_begins_at_zero() -> None:
    with pytest.raises(UnknownProducer):
        check(ProducerStates(), (9, 0, 3))


def test_an_open_transaction_holds_the_last_stable_offset_until_its_marker_is_committed() -> None:
    states = ProducerStates()
    send(states, 0, (1, 0, 0))
    send(states, 1, (2, 0, 0), transactional=True)
    send(states, 2, (3, 0, 0), transactional=True)
    assert states.last_stable_offset(Offset(3)) == 1
    end(states, 3, 2, 1)
    assert states.last_stable_offset(Offset(3)) == 1  # the marker is not below 3 (T3)
    assert states.last_stable_offset(Offset(4)) == 2
    end(states, 4, 3, 1)
    states.forget_decided(Offset(4))
    assert states.last_stable_offset(Offset(4)) == 2
    states.forget_decided(Offset(5))
    assert states.last_stable_offset(Offset(5)) == 5
    assert states.last_stable_offset(Offset(0)) == 0


def test_what_comes_late_cannot_touch_the_next_transaction() -> None:
    states = ProducerStates()
    send(states, 0, (1, 0, 0), transactional=True)
    end(states, 1, 1, 1)
    with pytest.raises(ProducerFenced):
        check(states, (1, 0, 1), transactional=True)
    again = header_of(marker(1, 1, commit=True))
    assert states.check_marker(again) == Duplicate(Offset(1), Offset(2))
    send(states, 2, (1, 1, 0), transactional=True)
    with pytest.raises(ProducerFenced):
        states.check_marker(again)
    assert states.last_stable_offset(Offset(9)) == 2


def test_a_transaction_must_end_before_the_next_epoch_writes() -> None:
    states = ProducerStates()
    send(states, 0, (1, 0, 0), transactional=True)
    with pytest.raises(ConcurrentTransaction):
        check(states, (1, 1, 0), transactional=True)
    with pytest.raises(InvalidTransaction):
        check(states, (1, 0, 1))


def test_expiry_spares_open_transactions() -> None:
    states = ProducerStates()
    states.apply(header_of(batch(producer=(1, 0, 0))), 10)
    states.apply(header_of(batch(producer=(2, 0, 0), transactional=True), 1), 10)
    states.apply(header_of(batch(producer=(3, 0, 0)), 2), 20)
    assert states.expire(before_ms=20) == 1
    assert [state.producer_id for state in states.states()] == [2, 3]


def test_a_damaged_snapshot_is_no_snapshot() -> None:
    state = LogState(end=Offset(0))
    for offset, raw in enumerate(
        [batch(producer=(1, 0, 0), transactional=True), batch(producer=(2, 0, 0))]
    ):
        state.apply(header_of(raw, offset), None, 5)
    state.apply(header_of(marker(1, 1, commit=False), 2), ControlType.ABORT, 6)
    good = state.encode()
    found = decode_state(good)
    assert found is not None
    assert found.encode() == good
    assert len(found.aborted) == 1
    for at in range(len(good)):
        assert decode_state(good[:at]) is None
        for bit in range(8):
            bad = bytearray(good)
            bad[at] ^= 1 << bit
            assert decode_state(bad) is None


producer_ids = st.integers(1, 3)


class Producers(RuleBasedStateMachine):
    """The state of a log grows with what `check` lets through; the twin is the list of batches."""

    def __init__(self) -> None:
        super().__init__()
        self.state = LogState(end=Offset(0))
        self.batches: list[bytes] = []
        self.leader_epoch = 0

    def append(self, raw: bytes) -> None:
        kept = stored(raw, self.state.end, self.leader_epoch)
        header = read_header(kept)
        kind = decode_marker(kept).kind if header.is_control else None
        self.state.apply(header, kind, 0)
        self.batches.append(kept)

    @rule(producer_id=producer_ids, count=st.integers(1, 3), transactional=st.booleans())
    def write_next(self, producer_id: int, count: int, *, transactional: bool) -> None:
        """What a well-behaved producer does."""
        known = self.state.producers.get(producer_id)
        transactional = transactional or (known is not None and known.open_from >= 0)
        producer = (producer_id, 0, 0)
        if known is not None:
            producer = (producer_id, known.producer_epoch, known.next_sequence)
        raw = batch(count, producer=producer, transactional=transactional)
        assert self.state.producers.check(header_of(raw)) == Fresh()
        self.append(raw)

    @rule(producer_id=producer_ids, commit=st.booleans())
    def end_transaction(self, producer_id: int, *, commit: bool) -> None:
        known = self.state.producers.get(producer_id)
        raw = marker(producer_id, (known.producer_epoch if known else 0) + 1, commit=commit)
        assert self.state.producers.check_marker(header_of(raw)) == Fresh()
        self.append(raw)

    @rule(
        producer_id=producer_ids,
        epoch=st.integers(0, 4),
        sequence=st.integers(0, 12),
        count=st.integers(1, 3),
        transactional=st.booleans(),
    )
    def write_anything(
        self, producer_id: int, epoch: int, sequence: int, count: int, *, transactional: bool
    ) -> None:
        raw = batch(count, producer=(producer_id, epoch, sequence), transactional=transactional)
        expected = self.verdict(producer_id, epoch, sequence, count, transactional=transactional)
        try:
            found: object = self.state.producers.check(header_of(raw))
        except SuiroError as error:
            found = type(error)
        assert found == expected
        if found == Fresh():
            self.append(raw)

    def verdict(
        self, producer_id: int, epoch: int, sequence: int, count: int, *, transactional: bool
    ) -> object:
        """The rules, on the twin."""
        known = Implied(self.batches).producers().get(producer_id)
        if known is None:
            return Fresh() if sequence == 0 else UnknownProducer
        known_epoch, sent, open_from, _ = known
        if epoch < known_epoch:
            return ProducerFenced
        for first, last, offset in sent:
            if epoch == known_epoch and (first, last) == (sequence, sequence + count - 1):
                return Duplicate(Offset(offset), Offset(offset + count))
        if open_from >= 0 and epoch > known_epoch:
            return ConcurrentTransaction
        if open_from >= 0 and not transactional:
            return InvalidTransaction
        following = sent[-1][1] + 1 if sent and epoch == known_epoch else 0
        return Fresh() if sequence == following else OutOfOrderSequence

    @rule(producer_id=producer_ids, epoch=st.integers(0, 4))
    def repeat_marker(self, producer_id: int, epoch: int) -> None:
        known = Implied(self.batches).producers().get(producer_id)
        raw = marker(producer_id, epoch, commit=True)
        if known is None or epoch > known[0]:
            assert self.state.producers.check_marker(header_of(raw)) == Fresh()
        elif epoch == known[0] and known[2] < 0 and known[3] >= 0:
            first = Duplicate(Offset(known[3]), Offset(known[3] + 1))
            assert self.state.producers.check_marker(header_of(raw)) == first
        else:
            with pytest.raises(ProducerFenced):
                self.state.producers.check_marker(header_of(raw))

    @rule()
    def change_leader(self) -> None:
        self.leader_epoch += 1

    @rule()
    def save_and_load(self) -> None:
        found = decode_state(self.state.encode())
        assert found is not None
        self.state = found

    @rule(high_watermark=st.integers(0, 60))
    def commit(self, high_watermark: int) -> None:
        offset = Offset(min(high_watermark, self.state.end))
        found = self.state.producers.last_stable_offset(offset)
        assert found == Implied(self.batches).last_stable_offset(offset)

    @invariant()
    def equals_the_twin(self) -> None:
        twin = Implied(self.batches)
        assert producers_of(self.state) == twin.producers()
        assert aborted_of(self.state, self.batches) == twin.aborted()
        by_offset = {o: self.state.epochs.epoch_of(Offset(o)) for o in range(self.state.end)}
        assert by_offset == twin.epochs()


TestProducers = Producers.TestCase
TestProducers.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
