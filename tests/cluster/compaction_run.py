"""Compaction of a gigabyte on a real node: a million keys, each updated ten times.

    python -m tests.cluster.compaction_run [--keys 1000000] [--rounds 10] [--memory-mib 128]

Writes the rounds one after the other, deletes one key in a hundred in the last one, then lets the
topic be compacted while a consumer reads all of it, again and again. Checked: the files, by a
reader that shares no code with the product; every offset that the consumer did not see had a newer
record of its key; the newest records and the tombstones are all there, at the offsets they had.
Printed: the time beside that of reading and writing the kept bytes with plain files, and the node's
memory: with a reader alone, and then with compaction. With --no-reader nobody reads beside it, and
what compaction adds has to stay below `compaction.memory.bytes.max` and a step of each worker.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import suiro
from suiro.admin import Admin
from suiro.model.ids import TopicPartition

from tests.checkers.segments import read_log
from tests.cluster.harness import SingleNode

TOPIC = "table"
VALUE_BYTES = 80
KEY_BYTES, ROUND_BYTES = 16, 4
DELETED_EVERY = 100
CHUNK = 100_000
MIB = 1 << 20
WAIT_S = 400.0
STEPS_MIB = 32
"""What two workers hold for a step each: a mebibyte read, its keys, their hashes, what is written.
"""


@dataclass(frozen=True, slots=True)
class Plan:
    keys: int
    rounds: int

    @property
    def records(self) -> int:
        return self.keys * self.rounds

    def table(self, number: int, start: int, end: int) -> pa.Table:
        """Records of one round; the value names the key and the round."""
        keys = np.arange(start, end)
        values = np.full((len(keys), VALUE_BYTES), ord("."), np.uint8)
        values[:, :KEY_BYTES] = digits(keys, KEY_BYTES)
        values[:, KEY_BYTES : KEY_BYTES + ROUND_BYTES] = digits(np.array([number]), ROUND_BYTES)
        is_gone = (keys % DELETED_EVERY == 0) & (number == self.rounds - 1)
        return pa.table(
            {
                "key": fixed(digits(keys, KEY_BYTES), None),
                "value": fixed(values, is_gone),
            }
        )


def digits(numbers: np.ndarray, width: int) -> np.ndarray:
    """Each number as so many decimal digits."""
    powers = 10 ** np.arange(width - 1, -1, -1, dtype=np.int64)
    return ((numbers[:, None] // powers) % 10 + ord("0")).astype(np.uint8)


def numbers(column: pa.Array, start: int, end: int) -> np.ndarray:
    """The inverse, of the same bytes of each value that is not null."""
    values = column.drop_null().cast(pa.binary())
    width = len(values[0].as_py()) if len(values) else 1
    data = np.frombuffer(b"".join(values.to_pylist()), np.uint8).reshape(-1, width)
    powers = 10 ** np.arange(end - start - 1, -1, -1, dtype=np.int64)
    return (data[:, start:end].astype(np.int64) - ord("0")) @ powers


def fixed(rows: np.ndarray, is_null: np.ndarray | None) -> pa.Array:
    whole = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(rows.shape[1]), len(rows), [None, pa.py_buffer(np.ascontiguousarray(rows))]
    ).cast(pa.binary())
    return whole if is_null is None else pc.if_else(pa.array(~is_null), whole, None)


class Memory(Thread):
    """The most that a process holds while this runs; without what it has mapped of files."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._path = Path(f"/proc/{pid}/status")
        self._done = Event()
        self.before_mib = self.now_mib()
        self.peak_mib = self.before_mib

    def now_mib(self) -> float:
        line = next(li for li in self._path.read_text().splitlines() if li.startswith("RssAnon"))
        return int(line.split()[1]) / 1024

    def run(self) -> None:
        while not self._done.wait(0.05):
            self.peak_mib = max(self.peak_mib, self.now_mib())

    def stop(self) -> None:
        self._done.set()
        self.join()


def write(plan: Plan, bootstrap: str) -> float:
    begun = time.monotonic()
    with suiro.Producer(bootstrap, compression="none") as producer:
        for number in range(plan.rounds):
            for start in range(0, plan.keys, CHUNK):
                end = min(plan.keys, start + CHUNK)
                producer.send_arrow(TOPIC, plan.table(number, start, end)).wait(60)
    return time.monotonic() - begun


def read_all(plan: Plan, bootstrap: str) -> np.ndarray:
    """Which offsets a consumer sees. Every record it gets is the one that was written there."""
    seen = np.zeros(plan.records, np.bool_)
    position = 0
    with suiro.Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        where = TopicPartition(TOPIC, 0)
        consumer.assign([where])
        while position < plan.records:
            got = consumer.poll_arrow(5.0)
            if got.num_rows:
                check_rows(plan, got.combine_chunks(), position)
                seen[got["offset"].to_numpy()] = True
            position = consumer.position(where)
    return seen


def check_rows(plan: Plan, got: pa.Table, position: int) -> None:
    offsets = got["offset"].to_numpy()
    assert offsets[0] >= position, "the consumer went back"
    assert (np.diff(offsets) > 0).all(), "offsets rise"
    rounds, keys = np.divmod(offsets, plan.keys)
    found = numbers(pa.chunked_array(got["key"]).combine_chunks(), 0, KEY_BYTES)
    assert (found == keys).all(), "a record is at the offset it had"
    values = got["value"].combine_chunks()
    is_gone = values.is_null().to_numpy(zero_copy_only=False)
    assert (is_gone == ((rounds == plan.rounds - 1) & (keys % DELETED_EVERY == 0))).all()
    assert (numbers(values, 0, KEY_BYTES) == keys[~is_gone]).all()
    assert (numbers(values, KEY_BYTES, KEY_BYTES + ROUND_BYTES) == rounds[~is_gone]).all()


def check_reader(plan: Plan, seen: np.ndarray) -> None:
    """Whatever it did not see had a newer record of its key: all of the last round it saw."""
    assert seen[plan.records - plan.keys :].all(), "a newest record was not seen"


def check_files(plan: Plan, directory: Path) -> int:
    """By the independent reader; how many bytes were kept."""
    end = kept = deleted = 0
    for batch in read_log(directory, compacted=True):
        assert batch.base_offset == end, "the offsets have a gap"
        end = batch.end
        if batch.count:
            for value in batch.values():
                kept += 1
                deleted += value is None
                round_of = (
                    None if value is None else int(value[KEY_BYTES : KEY_BYTES + ROUND_BYTES])
                )
                assert round_of in {None, plan.rounds - 1}, "an old value"
    assert end == plan.records
    assert kept == plan.keys, f"{kept} records are left of {plan.keys} keys"
    assert deleted == -(-plan.keys // DELETED_EVERY)
    return size_of(directory)


def size_of(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.glob("*.log"))


def compact(admin: Admin, directory: Path, target_bytes: float, memory_mib: int) -> float:
    """Switch it on; the seconds from the first new file until the last old one is gone."""
    admin.alter_configs(
        {
            "compaction.bytes.per.s.max": str(1 << 40),
            "compaction.memory.bytes.max": str(memory_mib * MIB),
        }
    )
    admin.alter_configs(
        {"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0.01"},
        topic=TOPIC,
    )
    deadline = time.monotonic() + WAIT_S
    begun: float | None = None
    while time.monotonic() < deadline:
        names = os.listdir(directory)
        if begun is None and any(name.endswith(".cleaned") for name in names):
            begun = time.monotonic()
        is_quiet = not any(name.endswith((".cleaned", ".swap", ".deleted")) for name in names)
        if begun is not None and is_quiet and size_of(directory) < target_bytes:
            return time.monotonic() - begun
        time.sleep(0.02)
    raise TimeoutError(f"not compacted within {WAIT_S:g} s: {size_of(directory)} bytes")


def plain_copy(directory: Path, size: int) -> float:
    """The seconds that reading and writing so many bytes take, with a sync at the end."""
    source = next(iter(sorted(directory.glob("*.log"), key=lambda p: -p.stat().st_size)))
    target = directory.parent / "copy.tmp"
    begun = time.monotonic()
    with target.open("wb") as out:
        left = size
        while left > 0:
            with source.open("rb") as stream:
                while left > 0 and (chunk := stream.read(min(left, MIB))):
                    out.write(chunk)
                    left -= len(chunk)
        out.flush()
        os.fsync(out.fileno())
    took = time.monotonic() - begun
    target.unlink()
    return took


def run(plan: Plan, folder: Path, memory_mib: int, *, has_reader: bool) -> None:
    with SingleNode(folder) as node, Admin(node.bootstrap) as admin:
        admin.create_topic(
            TOPIC, configs={"segment.bytes": str(64 * MIB), "cleanup.policy": "delete"}
        )
        took_s = write(plan, node.bootstrap)
        directory = next(folder.glob(f"data/**/{TOPIC}-0"))
        before = size_of(directory)
        print(
            f"wrote {plan.records} records, {before / MIB:.0f} MiB in {took_s:.1f} s",
            flush=True,
        )
        alone = Memory(node.pid)
        alone.start()
        assert read_all(plan, node.bootstrap).all(), "nothing is compacted yet"
        alone.stop()
        memory = Memory(node.pid)
        memory.start()
        found: list[np.ndarray] = []
        is_compacted = Event()

        def read_on() -> None:
            while not is_compacted.is_set():
                found.append(read_all(plan, node.bootstrap))
            found.append(read_all(plan, node.bootstrap))

        reader = Thread(target=read_on)
        if has_reader:
            reader.start()
        # Where the map is small there are many passes, and only the last one leaves so little.
        compacted_s = compact(admin, directory, 1.05 * before / plan.rounds, memory_mib)
        memory.stop()
        is_compacted.set()
        if has_reader:
            reader.join()
    for seen in found:
        check_reader(plan, seen)
    kept = check_files(plan, directory)
    plain_s = plain_copy(directory, kept)
    print(
        f"who read it meanwhile saw {', '.join(str(int(seen.sum())) for seen in found)} of "
        f"{plan.records} offsets, every newest record and tombstone among them each time\n"
        f"kept {kept / MIB:.0f} MiB, {plan.keys} records; compacted in {compacted_s:.2f} s, "
        f"{compacted_s / plain_s:.1f} times a plain copy of the kept bytes ({plain_s:.2f} s), "
        f"{before / MIB / compacted_s:.0f} MiB/s of the log\n"
        f"memory of the node: {alone.before_mib:.0f} MiB before, {alone.peak_mib:.0f} at most with "
        f"a reader alone, {memory.peak_mib:.0f} with compaction, whose limit is {memory_mib}, "
        f"{'and a reader' if has_reader else 'alone'}"
    )
    if not has_reader:
        assert memory.peak_mib - alone.peak_mib <= memory_mib + STEPS_MIB, "over the limit"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--memory-mib", type=int, default=128)
    parser.add_argument("--no-reader", action="store_true", help="so that memory is compaction's")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="suiro-compaction-") as folder:
        plan = Plan(options.keys, options.rounds)
        run(plan, Path(folder), options.memory_mib, has_reader=not options.no_reader)
    return 0


if __name__ == "__main__":
    sys.exit(main())
