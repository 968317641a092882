"""What an operator may ask for, on asyncio."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self, TypeVar

from suiro._proto import admin_pb2 as pb
from suiro._proto.common_pb2 import TopicPartition as WirePartition
from suiro.aio.cluster_view import look
from suiro.aio.disks import LogDirectoryInfo, log_directories, move_replica
from suiro.aio.group_admin import GroupAdmin
from suiro.aio.log_admin import delete_records, delete_records_before_time
from suiro.aio.moving import moving_partitions
from suiro.aio.txn_admin import TxnAdmin
from suiro.client_env import real_env
from suiro.connection import Connection
from suiro.model.errors import InvalidRequest, ReassignmentInProgress, TimedOut, UnknownBroker
from suiro.model.ids import NodeId, TopicPartition
from suiro.reassign_plan import Holder, Placed, drain, spread, with_replication_factor
from suiro.retry import Backoff
from suiro.settings import parse_bootstrap
from suiro.transport.methods import AdminMethods
from suiro.transport.wire_errors import error_from_proto, raise_if_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from suiro.aio.moving import Moving
    from suiro.client_env import ClientEnv
    from suiro.cluster_view import ClusterView
    from suiro.connection import TopicInfo
    from suiro.model.error_base import SuiroError
    from suiro.reassign_plan import Plan
    from suiro.transport.api import Method

Q = TypeVar("Q")
R = TypeVar("R")


class Admin:
    """Changes and describes the cluster.

    >>> async with aio.Admin() as admin:
    ...     info = await admin.create_topic("clicks", partitions=3)
    >>> info.name
    'clicks'
    """

    def __init__(
        self,
        bootstrap: str | None = None,
        *,
        timeout_s: float = 30.0,
        env: ClientEnv | None = None,
    ) -> None:
        env = env or real_env()
        self.connection = Connection(
            parse_bootstrap(bootstrap), env.transport, client_id="suiro-admin", rng=env.rng
        )
        self.timeout_s = timeout_s
        self.groups = GroupAdmin(self.connection, timeout_s, env.now_ms)
        self.transactions = TxnAdmin(self.connection, timeout_s, env.now_ms)

    async def __aenter__(self) -> Self:
        await self.connection.refresh([], timeout_s=self.timeout_s)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of everything.

        >>> await admin.close()
        """
        await self.connection.transport.close()

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int = 0,
        replication_factor: int = 0,
        configs: Mapping[str, str] | None = None,
    ) -> TopicInfo:
        """Make a topic; 0 leaves a number to the cluster's default. Raises TopicExists.

        >>> info = await admin.create_topic("clicks", partitions=3)
        >>> len(info.partitions)
        3
        """
        topic = pb.NewTopic(
            name=name,
            partitions=partitions,
            replication_factor=replication_factor,
            configs=dict(configs or {}),
        )
        reply = await self.ask(AdminMethods.CREATE_TOPICS, pb.CreateTopicsRequest(topics=[topic]))
        raise_if_error(reply.results[0].error)
        await self.connection.refresh([name], timeout_s=self.timeout_s, must_exist=True)
        return self.connection.topics[name]

    async def delete_topic(self, name: str) -> None:
        """Delete a topic and its records.

        >>> info = await admin.create_topic("clicks")
        >>> await admin.delete_topic("clicks")
        """
        reply = await self.ask(AdminMethods.DELETE_TOPICS, pb.DeleteTopicsRequest(names=[name]))
        raise_if_error(reply.results[0].error)
        self.connection.topics.pop(name, None)

    async def delete_records(self, partition: TopicPartition, before: int) -> int:
        """Delete the records of a partition below an offset (-1: all that are committed); returns
        where its log starts now.

        >>> info = await admin.create_topic("clicks")
        >>> await admin.delete_records(suiro.TopicPartition("clicks", 0), 0)
        0
        """
        return await delete_records(self.connection, partition, before, timeout_s=self.timeout_s)

    async def delete_records_before_time(self, partition: TopicPartition, before_ms: int) -> int:
        """Delete what comes before the first record at or after a point in time, in ms since
        1970; returns where the log starts now.

        >>> info = await admin.create_topic("clicks")
        >>> await admin.delete_records_before_time(suiro.TopicPartition("clicks", 0), 0)
        0
        """
        return await delete_records_before_time(
            self.connection, partition, before_ms, timeout_s=self.timeout_s
        )

    async def topics(self) -> dict[str, TopicInfo]:
        """Every topic, by name.

        >>> "fruit" in await admin.topics()
        True
        """
        return await self.connection.all_topics(timeout_s=self.timeout_s)

    async def describe_topic(self, name: str) -> TopicInfo:
        """One topic, fresh. Raises UnknownTopicOrPartition.

        >>> info = await admin.describe_topic("fruit")
        >>> info.partitions[0].leader
        1
        """
        await self.connection.refresh([name], timeout_s=self.timeout_s)
        return self.connection.topics[name]

    async def describe_configs(
        self, topic: str | None = None, *, broker: int | None = None
    ) -> dict[str, pb.ConfigEntry]:
        """Every setting of a topic, of a broker, or of the cluster if neither is named, by name.

        >>> configs = await admin.describe_configs("fruit")
        >>> configs["min.insync.replicas"].value
        '1'
        """
        resource, name = _config_resource(topic, broker)
        request = pb.DescribeConfigsRequest(resource=resource, name=name)
        reply = await self.ask(AdminMethods.DESCRIBE_CONFIGS, request)
        return {entry.key: entry for entry in reply.entries}

    async def alter_configs(
        self,
        changes: Mapping[str, str | None],
        *,
        topic: str | None = None,
        broker: int | None = None,
        validate_only: bool = False,
    ) -> None:
        """Set settings of a topic, of a broker, or of the cluster; None takes one back. All of them
        or none. They hold at once, without a restart.

        >>> await admin.alter_configs({"retention.ms": "3600000"}, topic="fruit")
        >>> (await admin.describe_configs("fruit"))["retention.ms"].source
        'topic'
        """
        resource, name = _config_resource(topic, broker)
        request = pb.AlterConfigsRequest(resource=resource, name=name, validate_only=validate_only)
        for key, value in changes.items():
            if value is None:
                request.unset.append(key)
            else:
                request.set[key] = value
        await self.ask(AdminMethods.ALTER_CONFIGS, request)

    async def describe_cluster(self) -> pb.DescribeClusterReply:
        """The nodes of the cluster.

        >>> cluster = await admin.describe_cluster()
        >>> [node.address.node_id for node in cluster.nodes]
        [1]
        """
        return await self.ask(AdminMethods.DESCRIBE_CLUSTER, pb.DescribeClusterRequest())

    async def look(self) -> ClusterView:
        """Nodes, topics and the quorum at one glance; `suiro.cluster_view` judges by it.

        >>> view = await admin.look()
        >>> [node.node_id for node in view.nodes]
        [1]
        """
        return await look(self)

    async def log_directories(self) -> list[LogDirectoryInfo]:
        """The log directories of every broker, what is in them, and what is free.

        >>> directories = await admin.log_directories()
        >>> [directory.broker for directory in directories]
        [1]
        """
        return await log_directories(self.connection)

    async def move_replica(self, partition: TopicPartition, *, broker: int, to: str) -> None:
        """Start to move a broker's replica to another of its log directories, given by its path.
        `log_directories` shows how far it is.

        >>> where = suiro.TopicPartition("fruit", 0)
        >>> path = (await admin.log_directories())[0].path
        >>> await admin.move_replica(where, broker=1, to=path)
        """
        await move_replica(self.connection, partition, NodeId(broker), to)

    # -- leaders and replicas ---------------------------------------------------------------------

    async def add_partitions(self, topic: str, total: int) -> TopicInfo:
        """Give a topic more partitions; `total` is how many there shall be.

        >>> info = await admin.create_topic("clicks")
        >>> info = await admin.add_partitions("clicks", 3)
        >>> len(info.partitions)
        3
        """
        request = pb.AddTopicPartitionsRequest(topic=topic, total=total)
        await self.ask(AdminMethods.ADD_PARTITIONS, request)
        return await self._described(topic, lambda info: len(info.partitions) >= total)

    async def set_replication_factor(
        self, topic: str, factor: int, *, throttle_bytes_per_s: int = 0
    ) -> Plan:
        """Give every partition of a topic so many replicas. More of them are copied in the
        background (see `reassignments`); returns the partitions that change.

        >>> plan = await admin.set_replication_factor("fruit", 1)
        >>> len(plan)
        0
        """
        placed = placed_partitions({topic: await self.describe_topic(topic)})
        plan = with_replication_factor(placed, await self.holders(), factor)
        await self.reassign(plan, throttle_bytes_per_s=throttle_bytes_per_s)
        return plan

    async def elect_leaders(
        self, partitions: Iterable[TopicPartition] | None = None, *, unclean: bool = False
    ) -> dict[TopicPartition, NodeId | SuiroError]:
        """Let the preferred replicas lead, of these partitions or of all; with `unclean` let
        whoever is left lead where nobody does and the topic allows it, and lose what that one
        lacks. Returns who leads now, or why not.

        >>> await admin.elect_leaders([suiro.TopicPartition("fruit", 0)])
        {TopicPartition(topic='fruit', partition=0): 1}
        """
        request = pb.ElectLeadersRequest(unclean=unclean)
        request.partitions.extend(map(_wire_partition, partitions or ()))
        reply = await self.ask(AdminMethods.ELECT_LEADERS, request)
        return _outcomes(reply.results)

    async def holders(self) -> list[Holder]:
        """The brokers that may be given replicas, with their racks.

        >>> holders = await admin.holders()
        >>> [holder.node_id for holder in holders]
        [1]
        """
        reply = await self.describe_cluster()
        return [
            Holder(NodeId(node.address.node_id), node.address.rack)
            for node in reply.nodes
            if "broker" in node.roles and not node.fenced and not node.shutting_down
        ]

    async def plan_spread(
        self, topics: Iterable[str] | None = None, to_brokers: Iterable[int] | None = None
    ) -> Plan:
        """How these topics (else all) would be spread over these brokers (else all).

        >>> plan = await admin.plan_spread(["fruit"])
        >>> len(plan)
        0
        """
        placed = await self._movable(topics)
        return spread(placed, _chosen(await self.holders(), to_brokers))

    async def plan_drain(self, node_id: int, topics: Iterable[str] | None = None) -> Plan:
        """How everything would be moved off a broker.

        >>> info = await admin.create_topic("clicks")
        >>> plan = await admin.plan_drain(2)
        >>> len(plan)
        0
        """
        return drain(await self._movable(topics), await self.holders(), NodeId(node_id))

    async def reassign(self, plan: Plan, *, throttle_bytes_per_s: int = 0) -> None:
        """Begin to carry a plan out. Each broker sends new replicas at most so many bytes per
        second, 0 for no limit; replicas that are in sync are not slowed down.

        >>> plan = await admin.plan_spread(["fruit"])
        >>> await admin.reassign(plan, throttle_bytes_per_s=50_000_000)
        """
        moves = [
            pb.NewReassignment(
                partition=_wire_partition(TopicPartition(placed.topic, placed.partition)),
                replicas=placed.replicas,
            )
            for placed in plan
        ]
        await self._alter(moves, throttle_bytes_per_s)

    async def throttle(self, bytes_per_s: int) -> None:
        """Change what reassignments that are under way may cost; 0 for no limit.

        >>> await admin.throttle(50_000_000)
        >>> await admin.throttle(0)
        """
        await self._alter([], bytes_per_s)

    async def cancel_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> list[TopicPartition]:
        """Put these partitions, or all that are under way, back as they were.

        >>> await admin.cancel_reassignments()
        []
        """
        if partitions is None:
            partitions = [moving.partition for moving in await self.reassignments()]
        chosen = list(partitions)
        moves = [pb.NewReassignment(partition=_wire_partition(name)) for name in chosen]
        reply = await self.ask(
            AdminMethods.ALTER_REASSIGNMENTS, pb.AlterReassignmentsRequest(reassignments=moves)
        )
        _raise_first(reply.results)
        return chosen

    async def reassignments(self) -> list[Moving]:
        """What is under way, and how much of it is left.

        >>> await admin.reassignments()
        []
        """
        return await moving_partitions(self)

    async def _alter(self, moves: list[pb.NewReassignment], throttle_bytes_per_s: int) -> None:
        request = pb.AlterReassignmentsRequest(
            reassignments=moves,
            throttle_bytes_per_s=throttle_bytes_per_s,
            unthrottled=not throttle_bytes_per_s,
        )
        reply = await self.ask(AdminMethods.ALTER_REASSIGNMENTS, request)
        _raise_first(reply.results)

    async def _movable(self, topics: Iterable[str] | None) -> list[Placed]:
        found = await self.topics()
        if topics is not None:
            found = {name: await self.describe_topic(name) for name in topics}
        placed = placed_partitions(found)
        under_way = {moving.partition for moving in await self.reassignments()}
        if any(TopicPartition(p.topic, p.partition) in under_way for p in placed):
            raise ReassignmentInProgress("wait until it is complete, or cancel it")
        return placed

    async def _described(self, topic: str, is_so: Callable[[TopicInfo], bool]) -> TopicInfo:
        """A topic once the brokers know of a change that was made."""
        backoff = Backoff(self.connection.rng)
        try:
            async with asyncio.timeout(self.timeout_s):
                while True:
                    info = await self.describe_topic(topic)
                    if is_so(info):
                        return info
                    await asyncio.sleep(backoff.next_s())
        except TimeoutError:
            raise TimedOut(f"{topic}: the brokers have not heard of the change yet") from None

    async def ask(self, method: Method[Q, R], request: Q) -> R:
        """Inside the SDK: one call of the Admin service, at whichever broker answers."""
        return await self.connection.any_broker(method, request, timeout_s=self.timeout_s)


def placed_partitions(topics: Mapping[str, TopicInfo]) -> list[Placed]:
    """Every partition of these topics, as a plan sees it."""
    return [
        Placed(name, number, info.replicas, info.isr)
        for name in sorted(topics)
        for number, info in enumerate(topics[name].partitions)
    ]


def _chosen(holders: list[Holder], wanted: Iterable[int] | None) -> list[Holder]:
    if wanted is None:
        return holders
    by_id = {holder.node_id: holder for holder in holders}
    ids = [NodeId(node_id) for node_id in wanted]
    missing = [node_id for node_id in ids if node_id not in by_id]
    if missing:
        raise UnknownBroker(f"{missing} are no brokers that are alive and staying")
    return [by_id[node_id] for node_id in ids]


def _wire_partition(partition: TopicPartition) -> WirePartition:
    return WirePartition(topic=partition.topic, partition=partition.partition)


def _outcomes(
    results: Iterable[pb.ElectionResult],
) -> dict[TopicPartition, NodeId | SuiroError]:
    return {
        TopicPartition(r.partition.topic, r.partition.partition): error_from_proto(r.error)
        if r.error.code
        else NodeId(r.leader)
        for r in results
    }


def _raise_first(results: Iterable[pb.ElectionResult]) -> None:
    """Each partition stands for itself: the others are on their way all the same."""
    for result in results:
        raise_if_error(result.error)


def _config_resource(topic: str | None, broker: int | None) -> tuple[Any, str]:
    if topic is not None and broker is not None:
        raise InvalidRequest("settings of a topic or of a broker, not of both")
    if topic is not None:
        return pb.TOPIC, topic
    return (pb.CLUSTER, "") if broker is None else (pb.BROKER, str(broker))
