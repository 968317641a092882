"""The operator's client for ordinary threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, TypeVar

from suiro import aio
from suiro.group_admin import GroupAdmin
from suiro.loop_thread import LoopThread
from suiro.txn_admin import TxnAdmin

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from suiro._proto import admin_pb2
    from suiro.aio.disks import LogDirectoryInfo
    from suiro.aio.moving import Moving
    from suiro.cluster_view import ClusterView
    from suiro.connection import TopicInfo
    from suiro.model.error_base import SuiroError
    from suiro.model.ids import NodeId, TopicPartition
    from suiro.reassign_plan import Holder, Plan
    from suiro.transport.api import Method

Q = TypeVar("Q")
R = TypeVar("R")


class Admin:
    """Changes and describes the cluster.

    >>> with suiro.Admin() as admin:
    ...     info = admin.create_topic("clicks", partitions=3)
    >>> info.name
    'clicks'
    """

    def __init__(self, bootstrap: str | None = None, *, timeout_s: float = 30.0) -> None:
        self._admin = aio.Admin(bootstrap, timeout_s=timeout_s)
        self._loop = LoopThread()
        self.groups = GroupAdmin(self._loop, self._admin.groups)
        self.transactions = TxnAdmin(self._loop, self._admin.transactions)
        try:
            self._loop.run(self._admin.__aenter__())
        except BaseException:
            self.close()
            raise

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 0,
        replication_factor: int = 0,
        configs: Mapping[str, str] | None = None,
    ) -> TopicInfo:
        """Make a topic; 0 leaves a number to the cluster's default. Raises TopicExists.

        >>> info = admin.create_topic("clicks", partitions=3)
        >>> len(info.partitions)
        3
        """
        return self._loop.run(
            self._admin.create_topic(
                name,
                partitions=partitions,
                replication_factor=replication_factor,
                configs=configs,
            )
        )

    def delete_topic(self, name: str) -> None:
        """Delete a topic and its records.

        >>> info = admin.create_topic("clicks")
        >>> admin.delete_topic("clicks")
        """
        self._loop.run(self._admin.delete_topic(name))

    def delete_records(self, partition: TopicPartition, before: int) -> int:
        """Delete the records of a partition below an offset (-1: all that are committed); returns
        where its log starts now.

        >>> info = admin.create_topic("clicks")
        >>> admin.delete_records(suiro.TopicPartition("clicks", 0), 0)
        0
        """
        return self._loop.run(self._admin.delete_records(partition, before))

    def delete_records_before_time(self, partition: TopicPartition, before_ms: int) -> int:
        """Delete what comes before the first record at or after a point in time, in ms since
        1970; returns where the log starts now.

        >>> info = admin.create_topic("clicks")
        >>> admin.delete_records_before_time(suiro.TopicPartition("clicks", 0), 0)
        0
        """
        return self._loop.run(self._admin.delete_records_before_time(partition, before_ms))

    def topics(self) -> dict[str, TopicInfo]:
        """Every topic, by name.

        >>> "fruit" in admin.topics()
        True
        """
        return self._loop.run(self._admin.topics())

    def describe_topic(self, name: str) -> TopicInfo:
        """One topic, fresh. Raises UnknownTopicOrPartition.

        >>> info = admin.describe_topic("fruit")
        >>> info.partitions[0].leader
        1
        """
        return self._loop.run(self._admin.describe_topic(name))

    def describe_configs(
        self, topic: str | None = None, *, broker: int | None = None
    ) -> dict[str, admin_pb2.ConfigEntry]:
        """Every setting of a topic, of a broker, or of the cluster if neither is named, by name.

        >>> configs = admin.describe_configs("fruit")
        >>> configs["min.insync.replicas"].value
        '1'
        """
        return self._loop.run(self._admin.describe_configs(topic, broker=broker))

    def alter_configs(
        self,
        changes: Mapping[str, str | None],
        *,
        topic: str | None = None,
        broker: int | None = None,
        validate_only: bool = False,
    ) -> None:
        """Set settings of a topic, of a broker, or of the cluster; None takes one back. All of them
        or none. They hold at once, without a restart.

        >>> admin.alter_configs({"retention.ms": "3600000"}, topic="fruit")
        >>> admin.describe_configs("fruit")["retention.ms"].source
        'topic'
        """
        self._loop.run(
            self._admin.alter_configs(
                changes, topic=topic, broker=broker, validate_only=validate_only
            )
        )

    def log_directories(self) -> list[LogDirectoryInfo]:
        """The log directories of every broker, what is in them, and what is free.

        >>> directories = admin.log_directories()
        >>> [directory.broker for directory in directories]
        [1]
        """
        return self._loop.run(self._admin.log_directories())

    def move_replica(self, partition: TopicPartition, *, broker: int, to: str) -> None:
        """Start to move a broker's replica to another of its log directories, given by its path.
        `log_directories` shows how far it is.

        >>> where = suiro.TopicPartition("fruit", 0)
        >>> path = admin.log_directories()[0].path
        >>> admin.move_replica(where, broker=1, to=path)
        """
        self._loop.run(self._admin.move_replica(partition, broker=broker, to=to))

    def describe_cluster(self) -> admin_pb2.DescribeClusterReply:
        """The nodes of the cluster.

        >>> cluster = admin.describe_cluster()
        >>> [node.address.node_id for node in cluster.nodes]
        [1]
        """
        return self._loop.run(self._admin.describe_cluster())

    def look(self) -> ClusterView:
        """Nodes, topics and the quorum at one glance; `suiro.cluster_view` judges by it.

        >>> view = admin.look()
        >>> [node.node_id for node in view.nodes]
        [1]
        """
        return self._loop.run(self._admin.look())

    # -- leaders and replicas ---------------------------------------------------------------------

    def add_partitions(self, topic: str, total: int) -> TopicInfo:
        """Give a topic more partitions; `total` is how many there shall be.

        >>> info = admin.create_topic("clicks")
        >>> info = admin.add_partitions("clicks", 3)
        >>> len(info.partitions)
        3
        """
        return self._loop.run(self._admin.add_partitions(topic, total))

    def set_replication_factor(
        self, topic: str, factor: int, *, throttle_bytes_per_s: int = 0
    ) -> Plan:
        """Give every partition of a topic so many replicas. More of them are copied in the
        background (see `reassignments`); returns the partitions that change.

        >>> plan = admin.set_replication_factor("fruit", 1)
        >>> len(plan)
        0
        """
        return self._loop.run(
            self._admin.set_replication_factor(
                topic, factor, throttle_bytes_per_s=throttle_bytes_per_s
            )
        )

    def elect_leaders(
        self, partitions: Iterable[TopicPartition] | None = None, *, unclean: bool = False
    ) -> dict[TopicPartition, NodeId | SuiroError]:
        """Let the preferred replicas lead, of these partitions or of all; with `unclean` let
        whoever is left lead where nobody does and the topic allows it, and lose what that one
        lacks. Returns who leads now, or why not.

        >>> admin.elect_leaders([suiro.TopicPartition("fruit", 0)])
        {TopicPartition(topic='fruit', partition=0): 1}
        """
        return self._loop.run(self._admin.elect_leaders(partitions, unclean=unclean))

    def holders(self) -> list[Holder]:
        """The brokers that may be given replicas, with their racks.

        >>> holders = admin.holders()
        >>> [holder.node_id for holder in holders]
        [1]
        """
        return self._loop.run(self._admin.holders())

    def plan_spread(
        self, topics: Iterable[str] | None = None, to_brokers: Iterable[int] | None = None
    ) -> Plan:
        """How these topics (else all) would be spread over these brokers (else all).

        >>> plan = admin.plan_spread(["fruit"])
        >>> len(plan)
        0
        """
        return self._loop.run(self._admin.plan_spread(topics, to_brokers))

    def plan_drain(self, node_id: int, topics: Iterable[str] | None = None) -> Plan:
        """How everything would be moved off a broker.

        >>> info = admin.create_topic("clicks")
        >>> plan = admin.plan_drain(2)
        >>> len(plan)
        0
        """
        return self._loop.run(self._admin.plan_drain(node_id, topics))

    def reassign(self, plan: Plan, *, throttle_bytes_per_s: int = 0) -> None:
        """Begin to carry a plan out. Each broker sends new replicas at most so many bytes per
        second, 0 for no limit; replicas that are in sync are not slowed down.

        >>> plan = admin.plan_spread(["fruit"])
        >>> admin.reassign(plan, throttle_bytes_per_s=50_000_000)
        """
        self._loop.run(self._admin.reassign(plan, throttle_bytes_per_s=throttle_bytes_per_s))

    def throttle(self, bytes_per_s: int) -> None:
        """Change what reassignments that are under way may cost; 0 for no limit.

        >>> admin.throttle(50_000_000)
        >>> admin.throttle(0)
        """
        self._loop.run(self._admin.throttle(bytes_per_s))

    def cancel_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> list[TopicPartition]:
        """Put these partitions, or all that are under way, back as they were.

        >>> admin.cancel_reassignments()
        []
        """
        return self._loop.run(self._admin.cancel_reassignments(partitions))

    def reassignments(self) -> list[Moving]:
        """What is under way, and how much of it is left.

        >>> admin.reassignments()
        []
        """
        return self._loop.run(self._admin.reassignments())

    def ask(self, method: Method[Q, R], request: Q) -> R:
        """Inside the SDK: one call of the Admin service, at whichever broker answers."""
        return self._loop.run(self._admin.ask(method, request))

    def close(self) -> None:
        """Let go of everything.

        >>> admin.close()
        """
        if not self._loop.is_open:
            return
        try:
            self._loop.run(self._admin.close())
        finally:
            self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
