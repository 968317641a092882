"""What 100,000 partitions cost the controllers and the nodes: `python -m bench.metadata`.

One topic at a time and all at once, snapshot and catch-up, a failover. The ceiling beside the rates
is the same number of plain dictionary updates, in the same run; memory is what tracemalloc counts.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from suiro.model.codec import decode, encode
from suiro.model.ids import Address, BrokerEpoch, NodeId, PartitionEpoch, TopicId
from suiro.model.image import ClusterImage
from suiro.model.records import PartitionChanged, Role

from bench.harness import Row, print_rows, rate, row
from cluster.controller_quorum.metadata import MetadataMachine
from cluster.controller_quorum.metadata_requests import NewTopic, Registration

if TYPE_CHECKING:
    from collections.abc import Callable

    from cluster.host.machine import Decision

PARTITIONS: Final = 100_000
TOPICS: Final = 1_000
BROKERS: Final = 25
REPLICAS: Final = 3
VICTIM: Final = NodeId(7)


def carry_out(machine: MetadataMachine, decision: Decision[Any]) -> None:
    for record in decision.records:
        machine.apply(record)


def a_cluster() -> MetadataMachine:
    machine = MetadataMachine()
    for number in range(BROKERS):
        node = Registration(
            node_id=NodeId(number),
            incarnation=number.to_bytes(16, "big"),
            roles=(Role.BROKER,),
            address=Address(f"broker-{number}", 9000),
            rack=f"rack-{number % 5}",
            log_directories=(f"{number:032x}",),
        )
        carry_out(machine, machine.decide_register(node, session_alive=False))
        epoch = machine.image.nodes[node.node_id].broker_epoch
        carry_out(machine, machine.decide_unfence(node.node_id, epoch))
    return machine


def create_all(machine: MetadataMachine) -> None:
    """A topic per request, as users make them."""
    for number in range(TOPICS):
        topic = NewTopic(
            name=f"topic-{number:04}",
            topic_id=TopicId(number.to_bytes(16, "big")),
            partitions=PARTITIONS // TOPICS,
            replication_factor=REPLICAS,
        )
        carry_out(machine, machine.decide_create_topics([topic]))
    assert machine.image.partition_count == PARTITIONS


def seconds(work: Callable[[], object], repeat: int) -> list[float]:
    figures = []
    for _ in range(repeat):
        began = time.perf_counter()
        work()
        figures.append(time.perf_counter() - began)
    return figures


def ceiling(repeat: int) -> Row:
    def work() -> float:
        return len({number: number for number in range(PARTITIONS)})

    return row("dictionary updates", "1/s", rate(work, repeat))


def run(repeat: int = 5) -> list[Row]:
    dictionary = ceiling(repeat)
    creating = [PARTITIONS / s for s in seconds(lambda: create_all(a_cluster()), min(repeat, 3))]
    machine = a_cluster()
    create_all(machine)
    image = machine.image
    records = list(image.records())
    encoded = [encode(record) for record in records]

    def both_ways() -> float:
        for record in records:
            decode(encode(record))
        return len(records)

    def restore() -> float:
        ClusterImage(map(decode, encoded))
        return len(encoded)

    return [
        row("create, 100 partitions a request", "partitions/s", creating, dictionary),
        row(
            "encode", "records/s", rate(lambda: len(list(map(encode, records))), repeat), dictionary
        ),
        row(
            "decode", "records/s", rate(lambda: len(list(map(decode, encoded))), repeat), dictionary
        ),
        row("encode and decode", "records/s", rate(both_ways, repeat), dictionary),
        row("restore a snapshot (decode, apply)", "records/s", rate(restore, repeat), dictionary),
        row("apply one change", "records/s", rate(changing(image), repeat), dictionary),
        row("list the snapshot", "s", seconds(lambda: list(image.records()), repeat)),
        row("state hash, nothing known", "s", [hashing(image, anew=True) for _ in range(repeat)]),
        row("state hash, one topic changed", "s", [hashing(image) for _ in range(repeat)]),
        row("decide to fence a broker", "s", seconds(lambda: fencing(machine), repeat)),
        row("leaders that move with it", "partitions", [float(len(image.leaders_on(VICTIM)))]),
        row("one topic of 100,000 partitions, decided", "s", seconds(one_large_topic, 1)),
        row("snapshot", "MB", [sum(map(len, encoded)) / 1e6]),
        row("image in memory", "MB", [memory_mb(encoded)]),
    ]


def each(work: Callable[[Any], object], items: list[Any]) -> Callable[[], float]:
    return lambda: len(list(map(work, items)))


def changing(image: ClusterImage) -> Callable[[], float]:
    """Every partition changes once, from where it is."""

    def work() -> float:
        for topic in image.topics.values():
            for state in list(topic.partitions):
                epoch = PartitionEpoch(state.partition_epoch + 1)
                image.apply(PartitionChanged(replace(state, partition_epoch=epoch)))
        return PARTITIONS

    return work


def hashing(image: ClusterImage, *, anew: bool = False) -> float:
    """Seconds for the hash of an image that has never been asked, or whose first topic changed."""
    image = ClusterImage(image.records()) if anew else image
    if not anew:
        image.state_hash()
        state = next(iter(image.topics.values())).partitions[0]
        epoch = PartitionEpoch(state.partition_epoch + 1)
        image.apply(PartitionChanged(replace(state, partition_epoch=epoch)))
    (taken,) = seconds(image.state_hash, 1)
    return taken


def fencing(machine: MetadataMachine) -> object:
    return machine.decide_fence(VICTIM, BrokerEpoch(VICTIM + 1))


def one_large_topic() -> object:
    topic = NewTopic(
        name="large",
        topic_id=TopicId(b"l" * 16),
        partitions=PARTITIONS,
        replication_factor=REPLICAS,
    )
    return a_cluster().decide_create_topics([topic])


def memory_mb(encoded: list[bytes]) -> float:
    tracemalloc.start()
    image = ClusterImage(map(decode, encoded))
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert image.partition_count == PARTITIONS
    return used / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    print_rows(run(parser.parse_args().repeat))


if __name__ == "__main__":
    main()
