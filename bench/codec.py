"""How fast batches are built and read: `python -m bench.codec`.

Each row stands beside a ceiling measured in the same run: a copy of the batch's bytes into memory
that is there already. The two are timed in turns, so that a noisy neighbour hurts both alike.
Records have 16-byte keys and 100-byte values, random, with a timestamp each. malloc is set as every
node and client sets it (`tune_process`): without that, fresh pages make batches of 1 MB up to three
times slower.
"""

from __future__ import annotations

import argparse
from array import array
from dataclasses import dataclass
from random import Random
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from suiro.model.arrow import encode_arrow, to_arrow
from suiro.model.batch import Compression
from suiro.model.columns import BatchOptions, decode, encode_lists, read_keys
from suiro.transport.tuning import tune_process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

KEY_BYTES: Final = 16
VALUE_BYTES: Final = 100
ROUND_S: Final = 0.1
"""One round is long enough that a timer's resolution and one interruption do not decide it."""

CEILING: Final = "copy of the same bytes"


@dataclass(frozen=True, slots=True)
class Task:
    """One thing to time: a call of `work` handles `records` records in a batch of `size` bytes."""

    name: str
    work: Callable[[], object]
    records: int
    size: int


def run(repeat: int = 5) -> list[dict[str, Any]]:
    """Every row of the table; medians of `repeat` rounds, with the lowest and highest."""
    tune_process()
    return [measure(task, repeat) for task in make_tasks()]


def measure(task: Task, repeat: int) -> dict[str, Any]:
    """Rates in million records per second."""
    source = bytes(task.size)
    room = memoryview(bytearray(task.size))

    def copy() -> None:
        room[:] = source

    loops, copy_loops = _loops(task.work), _loops(copy)
    rates, ceilings = [], []
    for _ in range(repeat):
        rates.append(task.records / _seconds(task.work, loops) / 1e6)
        ceilings.append(task.records / _seconds(copy, copy_loops) / 1e6)
    return {
        "name": task.name,
        "unit": "M records/s",
        "median": median(rates),
        "low": min(rates),
        "high": max(rates),
        "ceiling_name": CEILING,
        "ceiling_median": median(ceilings),
        "ratio": median(rates) / median(ceilings),
    }


def make_tasks() -> list[Task]:
    """What is measured, in the order of the table."""
    tasks = [task for count in (1_000, 10_000) for task in _bulk_tasks(count)]
    return [*tasks, *_header_tasks(1_000), *_compressed_tasks(10_000), *_single_tasks()]


def _bulk_tasks(count: int) -> list[Task]:
    keys, values, times = _records(count)
    stamps = array("q", times)
    arrow = pa.record_batch(
        {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "timestamp": pa.array(times, pa.timestamp("ms", "UTC")),
        }
    )
    batch = bytes(encode_lists(keys, values, timestamps_ms=times))

    def to_lists() -> object:
        columns = decode(batch)
        return columns.keys_list(), columns.values_list()

    works: dict[str, Callable[[], object]] = {
        "lists -> batch": lambda: encode_lists(keys, values, timestamps_ms=times),
        "lists -> batch, times as array": lambda: encode_lists(keys, values, timestamps_ms=stamps),
        "Arrow -> batch": lambda: encode_arrow(arrow),
        "batch -> Arrow": lambda: to_arrow(decode(batch)),
        "batch -> Arrow, CRC known good": lambda: to_arrow(decode(batch, verify_crc=False)),
        "batch -> lists": to_lists,
        "batch -> records, walked": lambda: _walk(decode(batch).records("topic", 0)),
        "batch -> keys": lambda: read_keys(batch).keys_list(),
    }
    tasks = [Task(f"{name}, {count:,}", work, count, len(batch)) for name, work in works.items()]
    eight = Task(
        f"8 batches -> one Arrow, {count:,} each",
        lambda: to_arrow([decode(batch) for _ in range(8)]),
        8 * count,
        8 * len(batch),
    )
    return [*tasks, eight]


def _header_tasks(count: int) -> list[Task]:
    keys, values, times = _records(count)
    headers = [(("trace", b"%016d" % i), ("origin", b"bench")) for i in range(count)]
    batch = encode_lists(keys, values, timestamps_ms=times, headers=headers)
    return [
        Task(
            f"lists -> batch, 2 headers, {count:,}",
            lambda: encode_lists(keys, values, timestamps_ms=times, headers=headers),
            count,
            len(batch),
        ),
        Task(
            f"batch -> records, 2 headers, {count:,}",
            lambda: _walk(decode(batch).records("topic", 0)),
            count,
            len(batch),
        ),
    ]


def _compressed_tasks(count: int) -> list[Task]:
    """Values of words, as random bytes would only measure giving up."""
    rng = Random(2)
    words = [b"%x" % rng.getrandbits(32) for _ in range(300)]
    keys, _, times = _records(count)
    values = [b" ".join(rng.choices(words, k=11))[:VALUE_BYTES] for _ in range(count)]
    tasks = []
    for codec in list(Compression)[1:]:
        options = BatchOptions(compression=codec)
        batch = encode_lists(keys, values, timestamps_ms=times, options=options)
        raw = count * (KEY_BYTES + VALUE_BYTES)
        name = f"{codec.name.lower()} ({len(batch) / raw:.0%})"

        def write(options: BatchOptions = options) -> object:
            return encode_lists(keys, values, timestamps_ms=times, options=options)

        def read(batch: bytearray = batch) -> object:
            return to_arrow(decode(batch))

        tasks.append(Task(f"lists -> {name}, {count:,}", write, count, raw))
        tasks.append(Task(f"{name} -> Arrow, {count:,}", read, count, raw))
    return tasks


def _single_tasks() -> list[Task]:
    keys, values, times = _records(1)
    batch = bytes(encode_lists(keys, values, timestamps_ms=times))
    works: dict[str, Callable[[], object]] = {
        "one record -> batch": lambda: encode_lists(keys, values, timestamps_ms=times[0]),
        "batch of one -> record": lambda: _walk(decode(batch).records("topic", 0)),
    }
    return [Task(name, work, 1, len(batch)) for name, work in works.items()]


def _records(count: int) -> tuple[list[bytes | None], list[bytes | None], list[int]]:
    rng = Random(1)
    keys: list[bytes | None] = [rng.randbytes(KEY_BYTES) for _ in range(count)]
    values: list[bytes | None] = [rng.randbytes(VALUE_BYTES) for _ in range(count)]
    return keys, values, [1_700_000_000_000 + i // 10 for i in range(count)]


def _walk(records: Iterable[object]) -> None:
    for _ in records:
        pass


def _loops(work: Callable[[], object]) -> int:
    """How many calls fill a round."""
    work()
    loops = 1
    while (seconds := _seconds(work, loops) * loops) < ROUND_S / 10:
        loops *= 2
    return max(1, round(loops * ROUND_S / seconds))


def _seconds(work: Callable[[], object], loops: int) -> float:
    began = perf_counter()
    for _ in range(loops):
        work()
    return (perf_counter() - began) / loops


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the batch codec.")
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    print(f"{'M records/s':42s} {'median':>8s} {'low':>8s} {'high':>8s} {'copy':>8s} {'ratio':>7s}")
    for row in run(arguments.repeat):
        print(
            f"{row['name']:42s} {row['median']:8.2f} {row['low']:8.2f} {row['high']:8.2f} "
            f"{row['ceiling_median']:8.1f} {row['ratio']:7.1%}"
        )


if __name__ == "__main__":
    main()
