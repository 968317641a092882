"""The operator's client for ordinary threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, TypeVar

from suiro import aio
from suiro.loop_thread import LoopThread

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suiro._proto import admin_pb2
    from suiro.connection import TopicInfo
    from suiro.transport.api import Method

Q = TypeVar("Q")
R = TypeVar("R")


class Admin:
    """Changes and describes the cluster.

    ```python
    with suiro.Admin() as admin:
        admin.create_topic("clicks", partitions=3)
    ```
    """

    def __init__(self, bootstrap: str | None = None, *, timeout_s: float = 30.0) -> None:
        self._admin = aio.Admin(bootstrap, timeout_s=timeout_s)
        self._loop = LoopThread()
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
        """Make a topic; 0 leaves a number to the cluster's default. Raises TopicExists."""
        return self._loop.run(
            self._admin.create_topic(
                name,
                partitions=partitions,
                replication_factor=replication_factor,
                configs=configs,
            )
        )

    def delete_topic(self, name: str) -> None:
        """Delete a topic and its records."""
        self._loop.run(self._admin.delete_topic(name))

    def topics(self) -> dict[str, TopicInfo]:
        """Every topic, by name."""
        return self._loop.run(self._admin.topics())

    def describe_topic(self, name: str) -> TopicInfo:
        """One topic, fresh. Raises UnknownTopicOrPartition."""
        return self._loop.run(self._admin.describe_topic(name))

    def describe_configs(self, topic: str) -> dict[str, admin_pb2.ConfigEntry]:
        """Every setting of a topic, by name."""
        return self._loop.run(self._admin.describe_configs(topic))

    def describe_cluster(self) -> admin_pb2.DescribeClusterReply:
        """The nodes of the cluster."""
        return self._loop.run(self._admin.describe_cluster())

    def ask(self, method: Method[Q, R], request: Q) -> R:
        """One call of the Admin service, at whichever broker answers."""
        return self._loop.run(self._admin.ask(method, request))

    def close(self) -> None:
        try:
            self._loop.run(self._admin.close())
        finally:
            self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
