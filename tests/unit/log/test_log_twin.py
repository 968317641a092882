"""The whole log against a list of batches: any sequence of calls, with reopening in between."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from suiro.model.ids import LeaderEpoch, Offset

from cluster.log.config import LogConfig
from tests.sim.disk import Everything, ForgetfulFs
from tests.unit.log.kit import (
    Implied,
    Place,
    TracedStore,
    aborted_of,
    batch,
    head,
    marker,
    read_all,
    stored,
)

sizes = st.integers(0, 150)


class Log(RuleBasedStateMachine):
    """`batches` is all that was ever appended and not cut; the log starts at `start`."""

    def __init__(self) -> None:
        super().__init__()
        self.fs = ForgetfulFs()
        self.place = Place(self.fs)
        self.config = LogConfig(segment_bytes=600, index_interval_bytes=130)
        self.log = self.place.open(self.config)
        self.batches: list[bytes] = []
        self.start = 0
        self.leader_epoch = 0
        self.clock_ms = 0

    @property
    def end(self) -> int:
        return head(self.batches[-1]).end if self.batches else 0

    def kept(self) -> list[bytes]:
        return [raw for raw in self.batches if head(raw).end > self.start]

    @rule(count=st.integers(1, 4), size=sizes, runs=st.integers(1, 3), stamp=st.integers(0, 50))
    def append(self, count: int, size: int, runs: int, stamp: int) -> None:
        raws = [batch(count, size=size, timestamp_ms=stamp, fill=n) for n in range(runs)]
        info = self.log.append_as_leader(raws, LeaderEpoch(self.leader_epoch), self.clock_ms)
        for raw, base_offset in zip(raws, info.base_offsets, strict=True):
            self.batches.append(stored(raw, self.end, self.leader_epoch))
            assert head(self.batches[-1]).base_offset == base_offset
        assert info.end == self.end

    @rule(size=sizes, producer_id=st.integers(1, 2), again=st.booleans())
    def produce(self, size: int, producer_id: int, *, again: bool) -> None:
        known = self.log.state.producers.get(producer_id)
        producer = (producer_id, 0, 0)
        if known is not None:
            producer = (producer_id, known.producer_epoch, known.next_sequence)
        raw = batch(2, size=size, producer=producer, transactional=True)
        epoch = LeaderEpoch(self.leader_epoch)
        first = self.log.append_as_leader(raw, epoch, self.clock_ms)
        self.batches.append(stored(raw, first.base_offset, self.leader_epoch))
        if again:
            retry = self.log.append_as_leader(raw, epoch, self.clock_ms)
            assert (retry.base_offset, retry.appended) == (first.base_offset, False)

    @rule(producer_id=st.integers(1, 2), commit=st.booleans())
    def end_transaction(self, producer_id: int, *, commit: bool) -> None:
        known = self.log.state.producers.get(producer_id)
        raw = marker(producer_id, known.producer_epoch + 1 if known else 1, commit=commit)
        info = self.log.append_control(raw, LeaderEpoch(self.leader_epoch), self.clock_ms)
        self.batches.append(stored(raw, info.base_offset, self.leader_epoch))

    @rule(count=st.integers(1, 3), size=sizes, rise=st.booleans())
    def follow(self, count: int, size: int, *, rise: bool) -> None:
        self.leader_epoch += rise
        raw = stored(batch(count, size=size), self.end, self.leader_epoch)
        self.log.append_as_follower(raw, self.clock_ms)
        self.batches.append(raw)

    @precondition(lambda self: self.kept())
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.start, self.end))
        kept = [raw for raw in self.batches if head(raw).end <= offset]
        if (kept and head(kept[-1]).end >= self.start) or self.start == 0:
            self.batches = kept
            assert self.log.truncate_to(Offset(offset), self.clock_ms) == self.end
            self.leader_epoch += 1

    @rule(data=st.data())
    def trim(self, data: st.DataObject) -> None:
        self.start = data.draw(st.integers(self.start, self.end))
        self.log.trim_to(Offset(self.start))

    @rule()
    def sync(self) -> None:
        assert self.log.sync() == self.log.synced_end == self.end

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule()
    def wait(self) -> None:
        self.clock_ms += self.config.segment_ms // 2

    @rule()
    def clean_up(self) -> None:
        self.place.clean_up()

    @rule(closed=st.booleans(), store_kept=st.booleans(), interval_bytes=st.integers(1, 400))
    def reopen(self, *, closed: bool, store_kept: bool, interval_bytes: int) -> None:
        """After a shutdown or a kill -9; perhaps with a lost store, if that loses no log start."""
        self.config = LogConfig(segment_bytes=600, index_interval_bytes=interval_bytes)
        if closed:
            self.log.close()
        self.fs.crash(Everything())
        store = self.place.store if store_kept or self.start else TracedStore()
        self.place = Place(self.fs, store)
        self.log = self.place.open(self.config)
        assert self.log.recovery.cut is None

    @invariant()
    def content_equals_the_list(self) -> None:
        assert (self.log.log_start, self.log.log_end) == (self.start, self.end)
        assert read_all(self.log, bytes_max=500) == self.kept()
        twin = Implied(self.kept())
        for offset, epoch in twin.epochs().items():
            assert offset < self.start or self.log.epoch_of(Offset(offset)) == epoch
        assert aborted_of(self.log.state, self.kept()) == Implied(self.batches).aborted() & {
            head(raw).base_offset for raw in self.kept()
        }

    @rule(asked=st.integers(0, 51))
    def find_by_time(self, asked: int) -> None:
        newer = [head(raw) for raw in self.kept() if head(raw).max_timestamp_ms >= asked]
        expected = max(newer[0].base_offset, self.start) if newer else None
        assert self.log.offset_for_timestamp(asked) == expected

    @precondition(lambda self: self.kept())
    @rule(data=st.data(), bytes_max=st.integers(1, 1_500))
    def read_anything(self, data: st.DataObject, bytes_max: int) -> None:
        offset = data.draw(st.integers(self.start, self.end - 1))
        until = data.draw(st.integers(offset, self.end + 3))
        found = self.log.read(Offset(offset), bytes_max, Offset(until))
        rest = [raw for raw in self.batches if head(raw).end > offset]
        assert b"".join(rest).startswith(found)
        whole = [raw for raw in rest if head(raw).end <= until]
        assert bool(found) == bool(whole and until > offset)
        assert len(found) <= max(bytes_max, len(rest[0]))
        assert len(found) <= sum(map(len, whole))


TestLog = Log.TestCase
TestLog.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
