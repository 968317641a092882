"""The internal topics are made by the first coordinator that needs them."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from suiro._proto import admin_pb2 as pb
from suiro.model.error_base import SuiroError
from suiro.model.errors import TopicExists
from suiro.retry import Backoff
from suiro.transport.methods import AdminMethods
from suiro.transport.wire_errors import raise_if_error

if TYPE_CHECKING:
    from cluster.host.env import Env
    from cluster.host.metadata_feed import MetadataFeed
    from cluster.host.quorum_client import QuorumClient

log = logging.getLogger("suiro.coordinator")

CREATE_TIMEOUT_S = 10.0


async def make_internal_topic(
    env: Env, quorum: QuorumClient, feed: MetadataFeed, name: str, partitions: int, replicas: int
) -> None:
    """Return once the topic is there; while there are too few brokers for it, wait for them.

    One replica may be missing without stopping the writes, where there are any to miss.
    """
    configs = {"min.insync.replicas": str(max(1, replicas - 1))}
    wanted = pb.NewTopic(
        name=name, partitions=partitions, replication_factor=replicas, configs=configs
    )
    backoff = Backoff(env.rng)
    while feed.image.topic(name) is None:
        try:
            reply = await quorum.call(
                AdminMethods.CREATE_TOPICS,
                pb.CreateTopicsRequest(topics=[wanted]),
                timeout_s=CREATE_TIMEOUT_S,
            )
            raise_if_error(reply.results[0].error)
        except TopicExists:
            pass  # another coordinator was faster; the feed will tell
        except SuiroError as error:
            log.info("%s cannot be created yet: %s", name, error)
        await asyncio.sleep(backoff.next_s())
