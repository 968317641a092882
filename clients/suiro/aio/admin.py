"""What an operator may ask for, on asyncio."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, TypeVar

from suiro._proto import admin_pb2 as pb
from suiro.connection import Connection
from suiro.settings import parse_bootstrap
from suiro.transport.grpc_transport import GrpcTransport
from suiro.transport.methods import AdminMethods
from suiro.transport.wire_errors import raise_if_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suiro.connection import TopicInfo
    from suiro.transport.api import Method

Q = TypeVar("Q")
R = TypeVar("R")


class Admin:
    """Changes and describes the cluster.

    ```python
    async with Admin() as admin:
        await admin.create_topic("clicks", partitions=3)
    ```
    """

    def __init__(self, bootstrap: str | None = None, *, timeout_s: float = 30.0) -> None:
        self.connection = Connection(
            parse_bootstrap(bootstrap), GrpcTransport(), client_id="suiro-admin"
        )
        self.timeout_s = timeout_s

    async def __aenter__(self) -> Self:
        await self.connection.refresh([], timeout_s=self.timeout_s)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self.connection.transport.close()

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int = 0,
        replication_factor: int = 0,
        configs: Mapping[str, str] | None = None,
    ) -> TopicInfo:
        """Make a topic; 0 leaves a number to the cluster's default. Raises TopicExists."""
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
        """Delete a topic and its records."""
        reply = await self.ask(AdminMethods.DELETE_TOPICS, pb.DeleteTopicsRequest(names=[name]))
        raise_if_error(reply.results[0].error)
        self.connection.topics.pop(name, None)

    async def topics(self) -> dict[str, TopicInfo]:
        """Every topic, by name."""
        return await self.connection.all_topics(timeout_s=self.timeout_s)

    async def describe_topic(self, name: str) -> TopicInfo:
        """One topic, fresh. Raises UnknownTopicOrPartition."""
        await self.connection.refresh([name], timeout_s=self.timeout_s)
        return self.connection.topics[name]

    async def describe_configs(self, topic: str) -> dict[str, pb.ConfigEntry]:
        """Every setting of a topic, by name."""
        reply = await self.ask(
            AdminMethods.DESCRIBE_CONFIGS,
            pb.DescribeConfigsRequest(resource=pb.TOPIC, name=topic),
        )
        return {entry.key: entry for entry in reply.entries}

    async def describe_cluster(self) -> pb.DescribeClusterReply:
        """The nodes of the cluster."""
        return await self.ask(AdminMethods.DESCRIBE_CLUSTER, pb.DescribeClusterRequest())

    async def ask(self, method: Method[Q, R], request: Q) -> R:
        """One call of the Admin service, at whichever broker answers."""
        return await self.connection.any_broker(method, request, timeout_s=self.timeout_s)
