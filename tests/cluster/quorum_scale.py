"""`python -m tests.cluster.quorum_scale`: a hundred thousand partitions, three real controllers.

Prints what creating them takes and costs, whether the leader stayed the same all the while, how
long a feed takes from nothing, how long an added controller takes to catch up, and the fencing of
a broker.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import tempfile
import time
from pathlib import Path

from suiro._proto import admin_pb2
from suiro._proto.common_pb2 import NodeAddress
from suiro.loop_thread import new_loop
from suiro.model.ids import NodeId
from suiro.transport.methods import AdminMethods
from suiro.transport.wire_errors import raise_if_error

from tests.cluster.quorum_harness import (
    BROKER,
    ControllerProcess,
    MetadataClient,
    RealQuorum,
    paper_broker,
)

CALL_S = 120.0
FENCED_S_MAX = 60.0


async def measure(root: Path, *, partitions: int, per_topic: int, brokers: int) -> None:
    quorum = RealQuorum(root, 3)
    try:
        await quorum.caught_up()
        async with contextlib.AsyncExitStack() as stack:
            for number in range(brokers - 1):
                await stack.enter_async_context(paper_broker(quorum, NodeId(BROKER + number)))
            async with paper_broker(quorum, NodeId(BROKER + brokers - 1)):
                await _create(quorum, partitions, per_topic)
                await _look(quorum)
                await _add(quorum)
            await _fence(quorum, NodeId(BROKER + brokers - 1))
    finally:
        await quorum.close()


async def _create(quorum: RealQuorum, partitions: int, per_topic: int) -> None:
    operator = MetadataClient(quorum, "operator")
    leader = await quorum.leader()
    before = await quorum.describe(leader)
    assert before is not None
    started_s = time.perf_counter()
    for number in range(partitions // per_topic):
        topic = admin_pb2.NewTopic(
            name=f"topic-{number}", partitions=per_topic, replication_factor=3
        )
        request = admin_pb2.CreateTopicsRequest(topics=[topic])
        reply = await operator.call(AdminMethods.CREATE_TOPICS, request, timeout_s=CALL_S)
        raise_if_error(reply.results[0].error)
    took_s = time.perf_counter() - started_s
    after = await quorum.describe(await quorum.leader())
    assert after is not None
    print(f"created {partitions} partitions, {per_topic} a topic: {took_s:.1f} s")
    print(f"terms of leadership meanwhile: {after.term - before.term + 1}")


async def _look(quorum: RealQuorum) -> None:
    await quorum.caught_up()
    for node in quorum.nodes.values():
        print(f"controller {node.node_id}: {_memory_mb(node):.0f} MB resident")
    leader = await quorum.leader()
    started_s = time.perf_counter()
    image = await quorum.image(leader)
    print(
        f"a feed from nothing, applied: {time.perf_counter() - started_s:.1f} s, "
        f"{sum(len(topic.partitions) for topic in image.topics.values())} partitions"
    )


async def _add(quorum: RealQuorum) -> None:
    joiner = quorum.joiner(4)
    joiner.start()
    quorum.nodes[4] = joiner
    while await quorum.describe(joiner) is None:  # noqa: ASYNC110 - another process
        await asyncio.sleep(0.05)
    started_s = time.perf_counter()
    address = NodeAddress(node_id=4, host=joiner.address.host, port=joiner.address.port)
    await MetadataClient(quorum, "operator").call(
        AdminMethods.ADD_CONTROLLER,
        admin_pb2.AddControllerRequest(address=address, directory_id=joiner.directory_id),
        timeout_s=CALL_S,
    )
    await quorum.caught_up()
    seen = await quorum.describe(joiner)
    assert seen is not None
    print(
        f"a fourth controller added and caught up: {time.perf_counter() - started_s:.1f} s, "
        f"by a snapshot up to {seen.snapshot_index} of {seen.last_index} entries"
    )


async def _fence(quorum: RealQuorum, node_id: NodeId) -> None:
    """Its session has just ended: until every controller has it fenced."""
    before = await quorum.describe(await quorum.leader())
    assert before is not None
    started_s = time.perf_counter()
    fenced = False
    while not fenced and time.perf_counter() - started_s < FENCED_S_MAX:
        reply = await MetadataClient(quorum, "operator").call(
            AdminMethods.DESCRIBE_CLUSTER, admin_pb2.DescribeClusterRequest(), timeout_s=CALL_S
        )
        fenced = any(n.address.node_id == node_id and n.fenced for n in reply.nodes)
        await asyncio.sleep(0.05)
    took_s = time.perf_counter() - started_s
    after = await quorum.describe(await quorum.leader())
    assert after is not None
    print(f"a broker fenced: {fenced} after {took_s:.1f} s, terms {after.term - before.term + 1}")


def _memory_mb(node: ControllerProcess) -> float:
    for line in Path(f"/proc/{node.process_id}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--per-topic", type=int, default=1_000)
    parser.add_argument("--brokers", type=int, default=9)
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        asyncio.Runner(loop_factory=new_loop) as runner,
    ):
        runner.run(
            measure(
                Path(folder),
                partitions=given.partitions,
                per_topic=given.per_topic,
                brokers=given.brokers,
            )
        )
    print(f"load average {os.getloadavg()}")


if __name__ == "__main__":
    main()
