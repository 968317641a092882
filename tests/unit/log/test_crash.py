"""Cut the power after every write, sync and rename of a long run, and see what is left.

A run does everything a log can do. After each operation that reaches the disk or the store, the
disk is crashed in several ways, on a copy; recovery opens what is left, and must find: everything
that was synced, nothing torn, offsets without a gap, a log that some version of the run's log
begins with, and the state that the dumb twin works out from the batches alone.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from random import Random
from typing import TYPE_CHECKING

import pytest
from suiro.model.ids import LeaderEpoch, Offset

from cluster.log import segment
from cluster.log.config import LogConfig
from tests.sim.disk import NAMED_SURVIVALS, Chance, Everything, ForgetfulFs, Operation
from tests.unit.log.kit import (
    Implied,
    Place,
    TracedStore,
    aborted_of,
    batch,
    head,
    marker,
    producers_of,
    read_all,
    stored,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.log.partition_log import PartitionLog
    from tests.sim.disk import Survival

Producers = dict[int, tuple[int, list[tuple[int, int, int]], int, int]]

CONFIG = LogConfig(segment_bytes=500, index_interval_bytes=120)
SEEDS = 3
OPERATIONS = 120
CHANCES = 4


@lru_cache(maxsize=512)
def implied(batches: tuple[bytes, ...]) -> Implied:
    return Implied(batches)


@lru_cache(maxsize=512)
def producers(batches: tuple[bytes, ...]) -> Producers:
    return implied(batches).producers()


@lru_cache(maxsize=512)
def aborted(batches: tuple[bytes, ...]) -> set[int]:
    return implied(batches).aborted()


@lru_cache(maxsize=512)
def last_stable_offset(batches: tuple[bytes, ...], high_watermark: int) -> int:
    return implied(batches).last_stable_offset(high_watermark)


@lru_cache(maxsize=512)
def ends(batches: tuple[bytes, ...]) -> list[int]:
    return [head(raw).end for raw in batches]


def from_base(batches: tuple[bytes, ...], base: int) -> tuple[bytes, ...]:
    return tuple(raw for raw in batches if head(raw).base_offset >= base)


def end_of(batches: tuple[bytes, ...]) -> int:
    return head(batches[-1]).end if batches else 0


class Run:
    """One life of a log, the versions that a crash may bring back, and what it may not lose."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.crash_rng = Random(seed + 1_000_000)
        self.fs = ForgetfulFs()
        self.place = Place(self.fs)
        self.log = self.place.open(CONFIG)
        self.leader_epoch = 0
        self.batches: tuple[bytes, ...] = ()  # from offset 0 on, also what was trimmed
        self.versions: set[tuple[bytes, ...]] = {()}
        self.starts = {0}
        self.synced_end = 0
        self.crashes = 0
        self.cuts = 0
        self.fs.after = self.on_operation
        self.place.store.after = self.crash_everywhere

    # -- the run ----------------------------------------------------------------------------------

    def step(self) -> None:
        actions = [
            (30, self.append),
            (12, self.append_marker),
            (8, self.follow),
            (14, self.sync),
            (4, self.log.roll),
            (6, self.truncate),
            (6, self.trim),
            (5, self.checkpoint),
            (5, self.place.clean_up),
            (3, self.reopen),
        ]
        weights = [weight for weight, _ in actions]
        self.rng.choices([action for _, action in actions], weights)[0]()

    def may_become(self, batches: tuple[bytes, ...]) -> None:
        """From now on a crash may leave this version of the log."""
        self.batches = batches
        self.versions.add(batches)

    def append(self) -> None:
        producer_id = self.rng.choice([-1, 1, 2, 3])
        known = self.log.state.producers.get(producer_id)
        producer = (-1, -1, -1)
        transactional = False
        if producer_id > 0:
            producer = (producer_id, 0, 0)
            transactional = producer_id > 1
            if known is not None:
                producer = (producer_id, known.producer_epoch, known.next_sequence)
        raw = batch(
            self.rng.randint(1, 3),
            size=self.rng.randint(0, 120),
            producer=producer,
            transactional=transactional,
            timestamp_ms=self.rng.randint(0, 1_000),
            fill=self.rng.randint(1, 255),
        )
        epoch = LeaderEpoch(self.leader_epoch)
        self.may_become((*self.batches, stored(raw, self.log.log_end, epoch)))
        self.log.append_as_leader(raw, epoch, 0)

    def append_marker(self) -> None:
        producer_id = self.rng.choice([2, 3])
        known = self.log.state.producers.get(producer_id)
        epoch = known.producer_epoch + 1 if known is not None else 1
        raw = marker(producer_id, epoch, commit=self.rng.random() < 0.5)
        self.may_become((*self.batches, stored(raw, self.log.log_end, self.leader_epoch)))
        self.log.append_control(raw, LeaderEpoch(self.leader_epoch), 0)

    def follow(self) -> None:
        """Several batches in one write, of epochs that may rise."""
        run: list[bytes] = []
        end = int(self.log.log_end)
        for _ in range(self.rng.randint(1, 4)):
            self.leader_epoch += self.rng.random() < 0.3
            run.append(stored(batch(2, size=self.rng.randint(0, 90)), end, self.leader_epoch))
            end += 2
        for number in range(len(run)):
            self.may_become((*self.batches, run[number]))
        self.log.append_as_follower(b"".join(run), 0)

    def sync(self) -> None:
        self.synced_end = self.log.sync()
        assert self.synced_end == self.log.log_end
        self.versions = {self.batches}

    def truncate(self) -> None:
        offset = self.rng.randint(self.log.log_start, self.log.log_end)
        kept = tuple(raw for raw in self.batches if head(raw).end <= offset)
        if end_of(kept) < self.log.log_start:
            return  # a batch that the log start cuts in two
        self.synced_end = min(self.synced_end, end_of(kept))
        self.may_become(kept)
        self.log.truncate_to(Offset(offset), 0)
        self.leader_epoch += 1

    def trim(self) -> None:
        limit = min(self.log.log_end, self.log.log_start + 25)
        start = self.rng.randint(self.log.log_start, limit)
        self.starts.add(start)
        self.log.trim_to(Offset(start))
        self.starts = {int(self.log.log_start)}

    def checkpoint(self) -> None:
        self.log.checkpoint(self.log.log_end, 0)

    def reopen(self) -> None:
        if self.rng.random() < 0.5:
            self.log.close()
            self.synced_end = self.log.log_end
            self.versions = {self.batches}
        self.log = self.place.open(CONFIG)  # else as after kill -9: nothing is lost

    # -- the crashes ------------------------------------------------------------------------------

    def on_operation(self, operation: Operation) -> None:
        self.crash_everywhere()

    def crash_everywhere(self) -> None:
        """Every outcome that differs from the others of this moment."""
        seen: list[tuple[dict[Path, bytes], dict[bytes, bytes]]] = []
        for survival, content in self.outcomes():
            fs = self.fs.survivors(survival)
            outcome = (fs.contents(), content)
            if outcome not in seen:
                seen.append(outcome)
                self.crashes += 1
                self.check(Place(fs, TracedStore(content)))

    def outcomes(self) -> Iterator[tuple[Survival, dict[bytes, bytes]]]:
        states = self.place.store.states
        for survival in NAMED_SURVIVALS:
            yield survival, self.crash_rng.choice(states)
        for _ in range(CHANCES):
            yield Chance(self.crash_rng), self.crash_rng.choice(states)

    def check(self, place: Place) -> None:
        log = place.open(CONFIG)
        assert int(log.log_start) in self.starts
        found = tuple(read_all(log))
        versions = self.versions_of(log, found)
        assert log.log_end >= self.synced_end
        self.cuts += log.recovery.cut is not None
        check_state(log, found, versions)
        if self.crash_rng.random() < 0.05:
            check_life_goes_on(log, place, found)

    def versions_of(self, log: PartitionLog, found: tuple[bytes, ...]) -> list[tuple[bytes, ...]]:
        """The versions that this log is a part of, each up to its end.

        A log of which nothing is left above its start may be a part of several.
        """
        candidates = []
        for version in self.versions:
            upto = version[: bisect_right(ends(version), log.log_end)]
            above = upto[bisect_right(ends(upto), log.log_start) :]
            is_empty = log.log_end == log.log_start
            if above == found and (is_empty or end_of(upto) == log.log_end):
                candidates.append(upto)
        assert candidates, f"[{log.log_start}, {log.log_end}) is no version of this log"
        return candidates


def check_state(
    log: PartitionLog, found: tuple[bytes, ...], versions: list[tuple[bytes, ...]]
) -> None:
    """What recovery worked out, against the twin."""
    for offset, epoch in implied(found).epochs().items():
        assert offset < log.log_start or log.epoch_of(Offset(offset)) == epoch
    base, known = log._segments[0].base, producers_of(log.state)
    fitting = [
        v for v in versions if is_between(producers(from_base(v, base)), known, producers(v))
    ]
    assert fitting, known
    version = max(fitting, key=end_of)
    visible = {head(raw).base_offset for raw in found}
    assert aborted_of(log.state, found) == aborted(version) & visible
    for high_watermark in (log.log_start, log.log_end):
        stable = log.state.producers.last_stable_offset(high_watermark)
        expected = last_stable_offset(version, high_watermark)
        assert stable == expected or expected < log.log_start
    for asked in (0, 400, 900):
        newer = [h for h in map(head, found) if h.max_timestamp_ms >= asked]
        first = max(newer[0].base_offset, log.log_start) if newer else None
        assert log.offset_for_timestamp(asked) == first


def is_between(held: Producers, found: Producers, whole: Producers) -> bool:
    """Recovery knows of producers at least what the segments tell, and nothing that never was.

    In between lies what only a snapshot knows, of batches that were trimmed.
    """
    if not held.keys() <= found.keys() <= whole.keys():
        return False
    for producer_id, (epoch, sent, open_from, marker_at) in found.items():
        all_epoch, all_sent, all_open_from, all_marker_at = whole[producer_id]
        _, held_sent, held_open_from, held_marker_at = held.get(producer_id, (0, [], -1, -1))
        if epoch != all_epoch or all_sent[len(all_sent) - len(sent) :] != sent:
            return False
        if len(sent) < len(held_sent) or marker_at not in (held_marker_at, all_marker_at):
            return False
        if (open_from < 0) != (all_open_from < 0) or open_from < all_open_from:
            return False
        if held_open_from >= 0 and open_from > held_open_from:
            return False
    return True


def check_life_goes_on(log: PartitionLog, place: Place, found: tuple[bytes, ...]) -> None:
    """The recovered log takes writes, and opens again as it is."""
    epoch = LeaderEpoch(max(0, log.last_epoch) + 1)
    base = log.append_as_leader(batch(2), epoch, 0).base_offset
    log.sync()
    log.checkpoint(log.log_end, 0)
    assert isinstance(place.fs, ForgetfulFs)
    fs = place.fs.survivors(NAMED_SURVIVALS[0])
    again = Place(fs, TracedStore(place.store.states[0])).open(CONFIG)
    assert read_all(again) == [*found, stored(batch(2), base, epoch)]
    assert producers_of(again.state).items() <= producers_of(log.state).items()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_crash_leaves_a_log(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment, "INDEX_FLUSH_ENTRIES", 2)
    run = Run(seed)
    for _ in range(OPERATIONS):
        run.step()
    run.sync()
    run.crash_everywhere()
    print(f"seed {seed}: {run.crashes} crashes, {run.cuts} cuts, {len(run.fs.trace)} operations")
    assert run.crashes > 1_000
    assert run.cuts > 100
    run.fs.crash(Everything())
    assert tuple(read_all(run.place.open(CONFIG))) == tuple(
        raw for raw in run.batches if head(raw).end > run.log.log_start
    )


def test_a_recovery_may_die_at_any_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Crash, and crash again after every operation of the recovery: the same log in the end."""
    monkeypatch.setattr(segment, "INDEX_FLUSH_ENTRIES", 2)
    rng, deaths = Random(5), 0
    for seed in range(20):
        run = Run(seed)
        run.fs.after = run.place.store.after = None
        for _ in range(40):
            run.step()
        fs = run.fs.survivors(Chance(rng))
        content = rng.choice(run.place.store.states)
        whole = Place(fs.survivors(Everything()), TracedStore(content)).open(CONFIG)
        expected, end = read_all(whole), whole.log_end
        place = Place(fs, TracedStore(content))
        left: list[Place] = []

        def die(
            operation: Operation | None = None,
            fs: ForgetfulFs = fs,
            store: TracedStore = place.store,
            left: list[Place] = left,
        ) -> None:
            survivors = fs.survivors(Chance(rng))
            left.append(Place(survivors, TracedStore(rng.choice(store.states))))

        fs.after = place.store.after = die
        place.open(CONFIG)
        deaths += len(left)
        for again in left:
            log = again.open(CONFIG)
            assert (read_all(log), log.log_end) == (expected, end)
            assert producers_of(log.state) == producers_of(whole.state)
    assert deaths > 50


def test_a_restart_of_the_log_is_all_or_nothing() -> None:
    """A crash in the middle leaves a part of the old log, or the empty new one."""
    for offset, is_synced in ((500, True), (500, False), (12, True), (12, False)):
        run = Run(offset)
        run.fs.after = run.place.store.after = None
        for number in range(12):
            run.log.append_as_leader(batch(2, fill=number, size=80), LeaderEpoch(0), 0)
        if is_synced:
            run.log.sync()
            run.log.checkpoint(run.log.log_end, 0)
        old = read_all(run.log)
        outcomes: list[tuple[int, int]] = []

        def look(
            run: Run = run, old: list[bytes] = old, found: list[tuple[int, int]] = outcomes
        ) -> None:
            for survival, content in run.outcomes():
                log = Place(run.fs.survivors(survival), TracedStore(content)).open(CONFIG)
                found.append((log.log_start, log.log_end))
                above = [raw for raw in old if head(raw).end > log.log_start]
                assert read_all(log) == above[: len(read_all(log))]

        run.fs.after = lambda _, look=look: look()
        run.place.store.after = look
        run.log.restart_at(Offset(offset))
        look()
        assert outcomes[-1] == (offset, offset)
        assert {start for start, _ in outcomes} <= {0, offset}
        assert {end for start, end in outcomes if start == offset} >= {offset}


def crashed(place: Place, seed: int) -> PartitionLog:
    """The log that recovery finds after a crash by chance."""
    assert isinstance(place.fs, ForgetfulFs)
    rng = Random(seed)
    fs = place.fs.survivors(Chance(rng))
    return Place(fs, TracedStore(rng.choice(place.store.states))).open(CONFIG)


def test_the_old_end_of_a_cut_file_never_comes_back_beside_a_newer_file() -> None:
    """Found by seed 112: old batches 6 to 11 and a newer file that starts at 12."""
    place = Place()
    log = place.open(CONFIG)
    for number in range(12):
        log.append_as_leader(batch(size=10, fill=number), LeaderEpoch(0), 0)
    old = read_all(log)
    log.sync()
    log.truncate_to(Offset(6), 0)
    for number in range(6):
        log.append_as_leader(batch(size=10, fill=100 + number), LeaderEpoch(1), 0)
    log.roll()
    log.append_as_leader(batch(size=10), LeaderEpoch(1), 0)
    new = read_all(log)
    for seed in range(200):
        found = read_all(crashed(place, seed))
        assert found in (old[: len(found)], new[: len(found)])


def test_files_below_the_log_start_may_come_back_in_any_selection() -> None:
    """Found by seed 111: a hole that ends above the log start, and begins below it."""
    place = Place()
    log = place.open(CONFIG)
    for number in range(10):
        log.append_as_leader(batch(size=200), LeaderEpoch(0), 0)
        if number == 4:
            log.sync()
            log.checkpoint(log.log_end, 0)
    assert isinstance(place.fs, ForgetfulFs)
    opened: list[PartitionLog] = []

    def look(_: Operation) -> None:
        opened.extend(crashed(place, len(opened) + number) for number in range(20))

    place.fs.after = look
    log.trim_to(Offset(7))
    assert len(opened) > 100
    assert {int(found.log_start) for found in opened} == {7}
