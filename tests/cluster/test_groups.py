"""Consumer groups of real processes: members and coordinators are killed, commits survive."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import suiro
from suiro.verify.groups import check

from cluster.local_cluster import Layout, LocalCluster
from tests.cluster.group_kit import GROUP, TOPIC, Crowd, is_unseen, make_topic, owners, until
from tests.cluster.group_load import load

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

PARTITIONS = 4


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("cluster"), Layout(brokers=1, groups=2)) as running:
        yield running


def are_shared_by(crowd: Crowd, *members: str) -> bool:
    """Each of them has as many partitions as the others."""
    now = [ownership.member for ownership in owners(crowd.events()).values()]
    return sorted(now) == sorted(list(members) * (PARTITIONS // len(members)))


async def test_members_and_coordinators_that_are_killed(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    await make_topic(cluster.bootstrap, PARTITIONS)
    settings = {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 1_000}
    crowd = Crowd(cluster.bootstrap, tmp_path, **settings)
    try:
        with load(cluster.bootstrap, TOPIC, PARTITIONS, 0.05) as ends:
            crowd.start("m1")
            crowd.start("m2")
            await until(lambda: are_shared_by(crowd, "m1", "m2"), "two share them")
            crowd.kill("m1")
            await until(lambda: are_shared_by(crowd, "m2"), "the other has them all")
            for coordinator in cluster.coordinators:
                coordinator.kill()
                coordinator.start()
                await asyncio.to_thread(coordinator.wait_ready)
            crowd.start("m3")
            await until(lambda: are_shared_by(crowd, "m2", "m3"), "two share them again")
        await until(lambda: not is_unseen(crowd, ends), "everything is read")
        crowd.close()
    finally:
        crowd.close()
    assert check(crowd.events(), ends) == []
    with suiro.Consumer(cluster.bootstrap, group_id=GROUP) as consumer:
        committed = {str(p): at.offset for p, at in consumer.committed().items()}
    assert committed == ends


def test_a_static_member_comes_back_to_what_it_had(cluster: LocalCluster) -> None:
    with suiro.Admin(cluster.bootstrap) as admin:
        admin.create_topic("static", partitions=2)

        def join() -> suiro.Consumer:
            consumer = suiro.Consumer(cluster.bootstrap, group_id="static", group_instance_id="one")
            consumer.subscribe("static")
            while len(consumer.assignment()) < 2:
                consumer.poll(0.1)
            return consumer

        with join():
            before = admin.groups.describe_group("static")
            with join():
                after = admin.groups.describe_group("static")
    assert (before.members[0].instance_id, len(after.members)) == ("one", 1)
    assert after.history == before.history, "nothing was shared out anew"


def test_a_poll_of_no_time_gets_its_share_too(cluster: LocalCluster) -> None:
    with suiro.Admin(cluster.bootstrap) as admin:
        admin.create_topic("hurry", partitions=1)
    with suiro.Producer(cluster.bootstrap) as producer:
        producer.send("hurry", b"x").result(10)
    settings = suiro.ConsumerSettings(group_id="hurry", auto_offset_reset="earliest")
    with suiro.Consumer(cluster.bootstrap, settings=settings) as consumer:
        consumer.subscribe("hurry")
        while not (records := consumer.poll(0)):
            continue
    assert [record.value for record in records] == [b"x"]


def test_a_handler_that_was_stuck_reads_on(cluster: LocalCluster) -> None:
    with suiro.Admin(cluster.bootstrap) as admin:
        admin.create_topic("stuck", partitions=1)
        lost: list[suiro.TopicPartition] = []
        settings = suiro.ConsumerSettings(
            group_id="stuck", auto_offset_reset="earliest", max_poll_interval_ms=1_000.0
        )
        with (
            suiro.Producer(cluster.bootstrap) as producer,
            suiro.Consumer(cluster.bootstrap, settings=settings) as consumer,
        ):
            consumer.subscribe("stuck", on_lost=lost.extend)
            producer.send("stuck", b"first").result(10)
            while not consumer.poll(0.2):
                continue
            while admin.groups.describe_group("stuck").members:
                continue  # the handler does not come back to its poll
            producer.send("stuck", b"second").result(10)
            seen: list[bytes | None] = []
            while b"second" not in seen:
                seen += [record.value for record in consumer.poll(0.2)]
        last = admin.groups.describe_group("stuck").history
    assert lost == [suiro.TopicPartition("stuck", 0)]
    assert any("the handler made no progress" in done.reason for done in last)
