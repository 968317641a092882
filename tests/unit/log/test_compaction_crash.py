"""Cut the power after every write, sync and rename of a compaction, and of the recovery after it.

What was synced before the pass is all there, in the old form or the compacted one: the same table
for a reader, the same end, the same producers. The next pass goes through.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest
from suiro.model.errors import DiskFull

from cluster.log import segment
from tests.sim.disk import NAMED_SURVIVALS, Chance, Everything, ForgetfulFs, Operation
from tests.unit.log.compaction_kit import CONFIG, ROOMY, History
from tests.unit.log.kit import DIRECTORY, Place, TracedStore, producers_of, segments

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.log.cleaner import Cleaning
    from cluster.log.partition_log import PartitionLog

CHANCES = 2


def run_to_the_end(cleaning: Cleaning) -> None:
    while cleaning.step():
        pass


class Crashes:
    """A history whose log is compacted while the power may go at any moment."""

    def __init__(self, seed: int) -> None:
        self.history = History(seed)
        for _ in range(45):
            self.history.step()
        while self.history.open:
            self.history.end_transaction()
        self.log = self.history.log
        self.log.roll()
        self.log.sync()
        self.log.checkpoint(self.log.log_end, 0)
        self.log.sync()
        self.history.now_ms += 5_000
        self.end = self.log.log_end
        self.producers = producers_of(self.log.state)
        self.rng = Random(seed)
        self.crashes = 0
        self.outcomes: list[tuple[dict[Path, bytes], dict[bytes, bytes]]] = []
        self.seen: set[str] = set()
        assert isinstance(self.history.place.fs, ForgetfulFs)
        self.fs = self.history.place.fs

    def compact(self) -> None:
        place = self.history.place
        self.fs.after = self.on_operation
        place.store.after = self.crash_everywhere
        self.history.compact_fully(self.log)
        place.clean_up()
        self.fs.after = place.store.after = None

    def on_operation(self, _: Operation) -> None:
        self.seen.update(name.partition(".")[2] for name in self.fs.names(DIRECTORY))
        self.crash_everywhere()

    def crash_everywhere(self) -> None:
        chances = [Chance(self.rng) for _ in range(CHANCES)]
        for survival in (*NAMED_SURVIVALS, *chances):
            content = self.rng.choice(self.history.place.store.states)
            fs = self.fs.survivors(survival)
            outcome = (fs.contents(), content)
            if outcome in self.outcomes:
                continue
            self.outcomes.append(outcome)
            place = Place(fs, TracedStore(content))
            self.crashes += 1
            self.check(place.open(CONFIG, self.history.now_ms), place)

    def check(self, log: PartitionLog, place: Place) -> None:
        assert log.log_end == self.end
        assert producers_of(log.state) == self.producers
        assert log.last_stable_offset(log.log_end) == self.end
        self.history.check(log)
        assert isinstance(place.fs, ForgetfulFs)
        left = {name.partition(".")[2] for name in place.fs.names(DIRECTORY)}
        assert left <= {"id", "log", "index", "timeindex"}, "nothing is left behind"
        if self.rng.random() < 0.05:
            self.history.compact_fully(log)
            self.history.check(log)


@pytest.mark.parametrize("seed", range(2))
def test_a_crash_in_a_compaction_leaves_the_old_log_or_the_new(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment, "INDEX_FLUSH_ENTRIES", 2)
    run = Crashes(seed)
    run.compact()
    assert run.seen >= {"log.cleaned", "log.swap", "log.deleted"}
    assert run.crashes > 20


def test_a_recovery_of_a_compaction_may_die_at_any_moment() -> None:
    run = Crashes(3)
    deaths = 0
    left: list[tuple[ForgetfulFs, dict[bytes, bytes]]] = []

    def note(_: Operation) -> None:
        if segments(run.fs, ".swap"):
            content = run.rng.choice(run.history.place.store.states)
            left.append((run.fs.survivors(Chance(run.rng)), content))

    run.fs.after = note
    run.history.compact_fully(run.log)
    assert left
    for fs, content in left:
        place = Place(fs, TracedStore(content))
        again: list[Place] = []

        def die(
            _: Operation | None = None, place: Place = place, again: list[Place] = again
        ) -> None:
            assert isinstance(place.fs, ForgetfulFs)
            survivors = place.fs.survivors(Chance(run.rng))
            again.append(Place(survivors, TracedStore(run.rng.choice(place.store.states))))

        fs.after = place.store.after = die
        place.open(CONFIG, run.history.now_ms)
        deaths += len(again)
        for there in again:
            run.check(there.open(CONFIG, run.history.now_ms), there)
    assert deaths > 20


def test_a_full_disk_stops_a_pass_and_nothing_else() -> None:
    run = Crashes(1)
    plan = run.log.plan_cleaning(run.log.log_end, run.history.now_ms)
    assert plan is not None
    used = sum(map(len, run.fs.contents().values()))
    run.fs.capacity_bytes = used + 200
    cleaning = run.log.start_cleaning(plan, seed=1, map_bytes_max=ROOMY)
    with pytest.raises(DiskFull):
        run_to_the_end(cleaning)
    cleaning.drop()
    run.history.place.clean_up()
    assert segments(run.fs, ".cleaned") == []
    run.history.check(run.log)
    run.fs.capacity_bytes = 1 << 40
    run.history.compact_fully(run.log)
    run.history.check(run.log)
    run.fs.crash(Everything())
    run.history.check(run.history.place.open(CONFIG))
