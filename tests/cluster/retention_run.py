"""Retention under load on three real brokers: nothing younger than the limit goes.

    python -m tests.cluster.retention_run [--minutes 4]

A producer writes all the time. Every second the start of the log is asked for: whatever is gone by
then must have been older than `retention.ms` (by the broker's clock, which is this machine's). A
reader of the very beginning gets OffsetOutOfRange with the new start, and can go on from there; one
that follows the end misses nothing.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass, field
from threading import Event, Thread

import suiro
from suiro.model.errors import OffsetOutOfRange
from suiro.model.ids import TopicPartition
from suiro.testing import Cluster

TOPIC = "stream"
WHERE = TopicPartition(TOPIC, 0)
RETENTION_MS = 30_000
SEGMENT_BYTES = 1 << 20
VALUE = b"x" * 1_000
PER_S = 500


@dataclass(eq=False)
class Writer(Thread):
    """Sends at a steady rate; remembers when each offset was sent, before it was."""

    bootstrap: str
    sent_ms: list[int] = field(default_factory=list)
    done: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        super().__init__(daemon=True)

    def run(self) -> None:
        with suiro.Producer(self.bootstrap) as producer:
            while not self.done.wait(1 / 20):
                now_ms = time.time_ns() // 1_000_000
                handles = [producer.send(TOPIC, VALUE) for _ in range(PER_S // 20)]
                for handle in handles:
                    assert handle.result(30).offset == len(self.sent_ms), "one writer, in order"
                    self.sent_ms.append(now_ms)


def follow(bootstrap: str, writer: Writer, found: list[int]) -> None:
    """Count what a reader at the end of the log gets; every offset, in order."""
    with suiro.Consumer(bootstrap, auto_offset_reset="none") as consumer:
        consumer.assign({WHERE: 0})
        expected = 0
        while not (writer.done.is_set() and expected >= len(writer.sent_ms)):
            for record in consumer.poll(1.0):
                assert record.offset == expected, f"{record.offset} after {expected - 1}"
                expected += 1
        found.append(expected)


def read_from_zero(bootstrap: str) -> int:
    """What a reader of the beginning is told: where the log starts now."""
    with suiro.Consumer(bootstrap, auto_offset_reset="none") as consumer:
        consumer.assign({WHERE: 0})
        try:
            consumer.poll(10.0)
        except OffsetOutOfRange as error:
            start = int(error.hints["start"])
            consumer.seek(WHERE, start)
            first = next(iter(consumer.poll(10.0)))
            assert first.offset >= start
            print(f"a reader of offset 0 is told: {error}", flush=True)
            return start
    raise AssertionError("offset 0 should be gone")


def watch(bootstrap: str, writer: Writer, until: float) -> list[tuple[int, int]]:
    """(new start, age of the youngest record that went) of every step of the log's start."""
    steps: list[tuple[int, int]] = []
    start = 0
    with suiro.Consumer(bootstrap) as consumer:
        consumer.assign([WHERE])
        while time.monotonic() < until:
            found = consumer.seek_to(WHERE, suiro.Bound.EARLIEST)
            now_ms = time.time_ns() // 1_000_000
            assert found >= start, "the start of a log never goes back"
            if found > start:
                age_ms = now_ms - writer.sent_ms[found - 1]
                assert age_ms >= RETENTION_MS, f"a record of {age_ms} ms is gone"
                steps.append((found, age_ms))
                start = found
            time.sleep(1.0)
    return steps


def run(minutes: float) -> None:
    with Cluster(3) as cluster:
        configs = {"retention.ms": str(RETENTION_MS), "segment.bytes": str(SEGMENT_BYTES)}
        with suiro.Admin(cluster.bootstrap) as admin:
            admin.create_topic(TOPIC, partitions=1, replication_factor=3, configs=configs)
        writer = Writer(cluster.bootstrap)
        writer.start()
        followed: list[int] = []
        follower = Thread(target=follow, args=(cluster.bootstrap, writer, followed), daemon=True)
        follower.start()
        steps = watch(cluster.bootstrap, writer, time.monotonic() + 60 * minutes)
        assert steps, "nothing was ever removed"
        start = read_from_zero(cluster.bootstrap)
        writer.done.set()
        writer.join()
        follower.join(60)
    assert followed == [len(writer.sent_ms)], "the reader at the end missed something"
    youngest = min(age_ms for _, age_ms in steps)
    print(
        f"{len(writer.sent_ms)} records written and read; the start moved {len(steps)} times, to "
        f"{start}; the youngest record that went was {youngest / 1000:.1f} s old, the limit is "
        f"{RETENTION_MS / 1000:.0f} s"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=4.0)
    run(parser.parse_args().minutes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
