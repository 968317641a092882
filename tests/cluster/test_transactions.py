"""Transactions between real processes: what readers see, who is fenced, what a dead coordinator
leaves behind. The long runs under kill -9 are `txn_bank`, `txn_copy` and `txn_failpoints`.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
import suiro

from cluster.local_cluster import Layout, LocalCluster
from tests.cluster.cli_kit import Shell
from tests.cluster.operator_kit import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

PARTITIONS = 3
TOPICS = ("orders", "payments")
TIMEOUT_MS = 30_000

JOIN = """
import sys, suiro
bootstrap, name, attempt, writer = sys.argv[1:]
batch = suiro.SharedBatch(name, 0, attempt)
with suiro.SharedWriter(batch, writer, bootstrap) as part:
    part.send("shared", writer.encode(), partition=0)
    print(part.prepare())
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    layout = Layout(brokers=2, groups=1, txns=2)
    with LocalCluster(tmp_path_factory.mktemp("cluster"), layout) as running:
        with suiro.Admin(running.bootstrap) as admin:
            for topic in (*TOPICS, "copied", "fenced", "shared", "stuck", "survives"):
                admin.create_topic(topic, partitions=PARTITIONS, replication_factor=2)
        yield running


def producer_of(cluster: LocalCluster, name: str, client_id: str = "test") -> suiro.Producer:
    return suiro.Producer(
        cluster.bootstrap,
        transactional_id=name,
        transaction_timeout_ms=TIMEOUT_MS,
        client_id=client_id,
    )


class ChangedMyMindError(Exception):
    """Of the application, in the middle of a transaction."""


def values_of(cluster: LocalCluster, topic: str, isolation: str = "read_committed") -> list[bytes]:
    """All that a reader may see of a topic now."""
    with suiro.Consumer(
        cluster.bootstrap, isolation=isolation, auto_offset_reset="earliest"
    ) as consumer:
        wheres = consumer.partitions_of(topic)
        ends = {where: consumer.offset_of(where, suiro.Bound.LATEST) for where in wheres}
        consumer.assign(wheres)
        found: list[bytes] = []
        while any(consumer.position(where) < end for where, end in ends.items()):
            found += [record.value or b"" for record in consumer.poll(1.0)]
    return sorted(found)


def write_everywhere(producer: suiro.Producer, word: bytes) -> None:
    for topic in TOPICS:
        for partition in range(PARTITIONS):
            producer.send(topic, word, partition=partition)


def is_stable(cluster: LocalCluster, *topics: str) -> bool:
    """Markers come after the answer: wait for this before looking at what is committed."""
    with suiro.Admin(cluster.bootstrap) as admin:
        return not admin.transactions.open_in_partitions(topics)


def test_all_partitions_of_all_topics_or_none(cluster: LocalCluster) -> None:
    with producer_of(cluster, "clerk") as producer:
        with producer.transaction():
            write_everywhere(producer, b"kept")
        with suppress(ChangedMyMindError), producer.transaction():
            write_everywhere(producer, b"dropped")
            producer.flush()
            raise ChangedMyMindError
        wait_until(lambda: is_stable(cluster, *TOPICS), "both have ended everywhere")
        producer.begin_transaction()
        write_everywhere(producer, b"open")
        producer.flush()
        for topic in TOPICS:
            assert values_of(cluster, topic) == [b"kept"] * PARTITIONS
            seen = values_of(cluster, topic, "read_uncommitted")
            assert seen == sorted([b"kept", b"dropped", b"open"] * PARTITIONS)
        producer.abort_transaction()


def test_a_zombie_is_told_who_took_its_id_and_when(cluster: LocalCluster) -> None:
    with (
        producer_of(cluster, "only-one", client_id="zombie") as zombie,
        producer_of(cluster, "only-one", client_id="heir") as heir,
    ):
        zombie.begin_transaction()
        zombie.send("fenced", b"of the zombie").result(20)
        with heir.transaction():
            heir.send("fenced", b"of the heir")
        with pytest.raises(
            suiro.errors.ProducerFenced, match=r"heir at 127\.0\.0\.1 took it at .* UTC"
        ) as raised:
            zombie.commit_transaction()
        assert raised.value.hints["fenced_by"] == "heir at 127.0.0.1"
        assert int(raised.value.hints["fenced_at_ms"]) > 0
        with pytest.raises(suiro.errors.ProducerFenced):
            zombie.begin_transaction()
    wait_until(lambda: is_stable(cluster, "fenced"), "both have ended")
    assert values_of(cluster, "fenced") == [b"of the heir"]


def test_offsets_are_committed_with_what_was_made_of_the_records(cluster: LocalCluster) -> None:
    with suiro.Producer(cluster.bootstrap) as producer:
        producer.send_many("copied", [b"a", b"b"], partition=0).wait(20)
    source, copy = suiro.TopicPartition("copied", 0), 1
    with (
        suiro.Consumer(
            cluster.bootstrap,
            group_id="copiers",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        ) as consumer,
        producer_of(cluster, "copier") as producer,
    ):
        consumer.assign([source])

        def copy_all() -> None:
            for record in consumer.poll(20):
                producer.send("copied", record.value, partition=copy)
            producer.send_offsets(consumer)

        with suppress(ChangedMyMindError), producer.transaction():
            copy_all()
            raise ChangedMyMindError
        wait_until(lambda: is_stable(cluster, "copied"), "it was aborted")
        assert consumer.committed([source]) == {}
        consumer.seek(source, 0)
        with producer.transaction():
            copy_all()
        assert consumer.committed([source])[source].offset == 2
    wait_until(lambda: is_stable(cluster, "copied"), "it is committed everywhere")
    assert values_of(cluster, "copied") == [b"a", b"a", b"b", b"b"]


def test_a_coordinator_killed_in_mid_transaction(cluster: LocalCluster) -> None:
    with producer_of(cluster, "survivor") as producer, suiro.Admin(cluster.bootstrap) as admin:
        with producer.transaction():
            producer.send("survives", b"before", partition=0).result(20)
            at = admin.transactions.describe("survivor").listing.coordinator
            victim = next(node for node in cluster.coordinators if node.address == at)
            victim.kill()
            producer.send("survives", b"meanwhile", partition=1).result(20)
        assert admin.transactions.describe("survivor").listing.coordinator != at
        victim.start()
        victim.wait_ready()
    wait_until(lambda: is_stable(cluster, "survives"), "its successor has ended it")
    assert values_of(cluster, "survives") == [b"before", b"meanwhile"]


def join(cluster: LocalCluster, batch: suiro.SharedBatch, writer: str) -> int:
    """A writer in a process of its own; its producer id."""
    words = (cluster.bootstrap, batch.name, batch.attempt, writer)
    said = subprocess.run(
        [sys.executable, "-c", JOIN, *words], capture_output=True, text=True, check=True, timeout=60
    )
    return int(said.stdout)


def test_writers_of_two_processes_share_a_transaction(cluster: LocalCluster) -> None:
    batch = suiro.SharedBatch("query", 0, "first try")
    counts = [join(cluster, batch, "task-1"), join(cluster, batch, "task-2")]
    speculative = join(cluster, batch, "task-2-again")
    assert len({*counts, speculative}) == 3
    with suiro.Admin(cluster.bootstrap) as admin:
        told = admin.transactions.describe("__shared/query")
    assert {writer.writer for writer in told.writers} == {"task-1", "task-2", "task-2-again"}
    with suiro.SharedTransactions(cluster.bootstrap) as shared:
        assert shared.commit(batch, counts) is suiro.Outcome.COMMITTED
        assert shared.commit(batch, counts) is suiro.Outcome.ALREADY_COMMITTED
        assert shared.last_committed("query") == 0
    wait_until(lambda: is_stable(cluster, "shared"), "all three have ended")
    assert values_of(cluster, "shared") == [b"task-1", b"task-2"]


def test_the_command_line_finds_and_ends_what_is_open(cluster: LocalCluster) -> None:
    shell = Shell(cluster.bootstrap)
    with producer_of(cluster, "stuck", client_id="sleeper") as producer:
        with producer.transaction():
            producer.send("stuck", b"kept", partition=0)
        wait_until(lambda: is_stable(cluster, "stuck"), "the first has ended")
        producer.begin_transaction()
        producer.send("stuck", b"dropped", partition=0).result(20)

        (listed,) = shell.data("txn", "list", "--state", "ongoing")
        assert (listed["transactional_id"], listed["client"].split()[0]) == ("stuck", "sleeper")
        assert shell.data("txn", "list", "--state", "ongoing", "--open-for-s", "3600") == []
        assert listed["coordinator"] in {str(node.address) for node in cluster.coordinators}
        shown = shell.data("txn", "describe", "stuck")
        assert (shown["state"], shown["partitions"]) == ("ongoing", ["stuck-0"])
        assert shown["last_outcome"].startswith("committed at ")
        assert "partitions: stuck-0\n" in shell.ask("txn", "describe", "stuck")
        there = shell.data("txn", "producers", "stuck", "0")
        assert (there["last_stable_offset"], there["high_watermark"]) == (2, 3)
        assert [each["open_from"] for each in there["producers"]] == [2]
        (held,) = shell.data("txn", "find-hanging", "--topic", "stuck", "--silent-for-s", "0")
        assert (held["partition"], held["transactional_id"]) == ("stuck-0", "stuck")
        assert shell.data("txn", "find-hanging", "--topic", "stuck") == [], "it is not old enough"

        assert shell.ask("txn", "abort", "stuck") == "no transaction of stuck is open any more\n"
        wait_until(lambda: is_stable(cluster, "stuck"), "the second was aborted")
        with pytest.raises(suiro.errors.TransactionAborted, match="by an operator at 127"):
            producer.commit_transaction()
        producer.abort_transaction()
    assert values_of(cluster, "stuck") == [b"kept"]
    assert "nobody has taken" in shell.refused("txn", "abort", "nobody")
