"""Random histories of a compacted log, and an independent reader that knows what is to be found.

A history writes keyed records, inside and outside of transactions that commit or abort, rolls,
compacts, trims and reopens, while a follower copies the log at its own pace and compacts on its
own. The reader remembers every record that was ever written and folds the committed ones into a
dictionary; both logs, read as a consumer reads them, have to give the same.

    python -m tests.unit.log.compaction_kit --count 500
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

from suiro.model.batch import Compression, walk
from suiro.model.columns import decode
from suiro.model.encode import BatchOptions, encode_lists
from suiro.model.ids import LeaderEpoch, Offset

from cluster.broker.visible import visible_batches
from cluster.log.config import LogConfig
from tests.unit.log.kit import Place, marker, producers_of, read_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cluster.log.cleaner import Cleaning
    from cluster.log.partition_log import PartitionLog

Table = dict[bytes, bytes]

RETENTION_MS = 1_000
CONFIG = LogConfig(
    segment_bytes=1_500,
    index_interval_bytes=200,
    compacts=True,
    deletes=False,
    min_cleanable_dirty_ratio=0.0,
    delete_retention_ms=RETENTION_MS,
)
ROOMY = 1 << 20
TRANSACTIONAL = (3, 4, 5)
KEYS: tuple[bytes | None, ...] = (*(b"key-%d" % n for n in range(9)), b"", b"long" * 40, None)


@dataclass(frozen=True)
class Written:
    """One record as it was sent; `transaction` is None outside of one."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    transaction: int | None


class History:
    """One random life of a leader's and a follower's log."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.now_ms = 10_000
        self.leader_epoch = 0
        self.place, self.copy_place = Place(), Place()
        self.log = self.place.open(CONFIG)
        self.copy = self.copy_place.open(replace(CONFIG, segment_bytes=2_500))
        self.written: dict[int, Written] = {}
        self.open: dict[int, int] = {}  # producer id -> its transaction
        self.committed: set[int | None] = {None}
        self.transactions = 0
        self.passes = 0

    def step(self) -> None:
        actions = [
            (40, self.append),
            (12, self.end_transaction),
            (8, self.log.roll),
            (8, self.compact),
            (6, self.compact_the_copy),
            (8, self.replicate),
            (3, self.pass_time),
            (2, self.reopen),
            (2, self.new_leader_epoch),
            (1, self.trim),
        ]
        self.rng.choices([act for _, act in actions], [weight for weight, _ in actions])[0]()

    # -- writing ----------------------------------------------------------------------------------

    def append(self) -> None:
        rng = self.rng
        producer_id = rng.choice([-1, -1, 1, 2, *TRANSACTIONAL])
        options = BatchOptions(compression=rng.choice([Compression.NONE, Compression.LZ4]))
        transaction = None
        if producer_id > 0:
            known = self.log.producers.get(producer_id)
            transactional = producer_id in TRANSACTIONAL
            options = replace(
                options,
                producer_id=producer_id,
                producer_epoch=0 if known is None else known.producer_epoch,
                base_sequence=0 if known is None else known.next_sequence,
                transactional=transactional,
            )
            if transactional:
                if producer_id not in self.open:
                    self.transactions += 1
                    self.open[producer_id] = self.transactions
                transaction = self.open[producer_id]
        count = rng.choice([1, 1, 2, 5, 12])
        keys = [rng.choice(KEYS) for _ in range(count)]
        values = [None if rng.random() < 0.25 else rng.randbytes(rng.randrange(40)) for _ in keys]
        stamps = [self.now_ms + rng.randrange(50) for _ in keys]
        batch = encode_lists(keys, values, timestamps_ms=stamps, options=options)
        info = self.log.append_as_leader(batch, LeaderEpoch(self.leader_epoch), self.now_ms)
        rows = zip(keys, values, stamps, strict=True)
        for offset, (key, value, stamp) in enumerate(rows, info.base_offset):
            self.written[offset] = Written(offset, key, value, stamp, transaction)

    def end_transaction(self) -> None:
        if not self.open:
            return
        producer_id = self.rng.choice(sorted(self.open))
        transaction = self.open.pop(producer_id)
        commit = self.rng.random() < 0.6
        if commit:
            self.committed.add(transaction)
        known = self.log.producers.get(producer_id)
        assert known is not None
        raw = marker(producer_id, known.producer_epoch + 1, commit=commit)
        self.log.append_control(raw, LeaderEpoch(self.leader_epoch), self.now_ms)

    def new_leader_epoch(self) -> None:
        self.leader_epoch += 1

    # -- what happens to it -----------------------------------------------------------------------

    def compact(self) -> None:
        cleaning = self.begin(self.log)
        if cleaning is None:
            return
        while cleaning.step():
            if self.rng.random() < 0.2:
                self.append()  # life goes on
        if self.log.finish_cleaning(cleaning, self.now_ms):
            self.passes += 1
        self.place.clean_up()

    def begin(self, log: PartitionLog) -> Cleaning | None:
        plan = log.plan_cleaning(log.log_end, self.now_ms)
        if plan is None:
            return None
        room = self.rng.choice([1, 300, ROOMY])
        return log.start_cleaning(plan, seed=self.rng.getrandbits(64), map_bytes_max=room)

    def compact_the_copy(self) -> None:
        cleaning = self.begin(self.copy)
        if cleaning is not None:
            while cleaning.step():
                pass
            self.copy.finish_cleaning(cleaning, self.now_ms)
            self.copy_place.clean_up()

    def replicate(self) -> None:
        """A few batches to the follower; it may stop in the middle of what becomes filler."""
        for _ in range(self.rng.randrange(1, 12)):
            if self.copy.log_end == self.log.log_end:
                return
            if self.copy.log_end < self.log.log_start:
                self.copy.restart_at(self.log.log_start)
            self.copy.append_as_follower(self.log.read_from(self.copy.log_end, 1), self.now_ms)

    def pass_time(self) -> None:
        """A replica is never away for longer than the marks are kept."""
        while self.copy.log_end < self.log.log_end:
            self.replicate()
        self.now_ms += self.rng.choice([10, RETENTION_MS, 3 * RETENTION_MS])

    def trim(self) -> None:
        start = self.rng.randrange(self.log.log_start, self.log.log_end + 1)
        self.log.trim_to(Offset((self.log.log_start * 3 + start) // 4))
        self.place.clean_up()

    def reopen(self) -> None:
        """With and without the snapshots: the log alone has to tell the same."""
        before, end = producers_of(self.log.state), self.log.log_end
        stable = self.log.last_stable_offset(end)
        self.log.close()
        if self.rng.random() < 0.5 and self.log.log_start == 0:
            self.place.store.content = {
                key: value
                for key, value in self.place.store.content.items()
                if b"/snapshot/" not in key
            }
        self.log = self.place.open(CONFIG, self.now_ms)
        assert self.log.log_end == end
        assert producers_of(self.log.state) == before
        assert self.log.last_stable_offset(end) == stable

    # -- the end ----------------------------------------------------------------------------------

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step()
        while self.open:
            self.end_transaction()
        self.pass_time()
        self.check(self.log)
        self.check(self.copy)
        for log in (self.log, self.copy):
            log.roll()
            self.compact_fully(log)
            self.check(log)
            keys = [row.key for row in self.read(log) if row.key is not None]
            assert len(keys) == len(set(keys)), "only the newest record of each key is left"

    def compact_fully(self, log: PartitionLog) -> None:
        while plan := log.plan_cleaning(log.log_end, self.now_ms):
            cleaning = log.start_cleaning(plan, seed=7, map_bytes_max=ROOMY)
            while cleaning.step():
                pass
            assert log.finish_cleaning(cleaning, self.now_ms)

    def check(self, log: PartitionLog) -> None:
        found = self.read(log)
        for row in found:
            assert row == replace(self.written[row.offset], transaction=None)
        assert fold(found) == fold(self.expected(log.log_start))

    def expected(self, start: int) -> list[Written]:
        rows = [self.written[offset] for offset in sorted(self.written) if offset >= start]
        return [row for row in rows if row.transaction in self.committed]

    def read(self, log: PartitionLog) -> list[Written]:
        """As a consumer of committed records reads it."""
        rows: list[tuple[int, bytes | None, bytes | None, int]] = []
        for raw in read_all(log):
            for _, header in walk(raw):
                aborted = log.aborted(Offset(header.base_offset), Offset(header.end))
                for batch in visible_batches(raw, aborted):
                    columns = decode(batch)
                    rows += zip(
                        columns.offsets_list(),
                        columns.keys_list(),
                        columns.values_list(),
                        columns.timestamps_list(),
                        strict=True,
                    )
        return [Written(*row, transaction=None) for row in rows if row[0] >= log.log_start]


def fold(rows: Sequence[Written]) -> Table:
    """What a reader has at the end who keeps the newest value of each key."""
    table: Table = {}
    for row in rows:
        if row.key is None:
            table[b"without a key at %d" % row.offset] = row.value or b""
        elif row.value is None:
            table.pop(row.key, None)
        else:
            table[row.key] = row.value
    return table


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    passes = 0
    for seed in range(arguments.first, arguments.first + arguments.count):
        history = History(seed)
        try:
            history.run(steps=160)
        except BaseException:
            sys.stderr.write(f"seed {seed}\n")
            raise
        passes += history.passes
    sys.stdout.write(f"{arguments.count} histories, {passes} passes: as the reader says\n")


if __name__ == "__main__":
    main()
