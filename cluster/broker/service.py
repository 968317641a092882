"""The Broker service: the routes, and the small handlers that need no file of their own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from suiro._proto import admin_pb2 as admin
from suiro._proto import broker_pb2 as pb
from suiro._proto.common_pb2 import READ_COMMITTED
from suiro.model.configs import broker_config
from suiro.model.error_base import SuiroError
from suiro.model.errors import InvalidRequest, TopicExists, UnsupportedVersion
from suiro.model.ids import TopicPartition
from suiro.model.records import ConfigResource
from suiro.transport.api import Route
from suiro.transport.methods import AdminMethods, BrokerMethods
from suiro.transport.wire_errors import error_from_proto, error_to_proto
from suiro.version import PROTOCOL_MAX, PROTOCOL_MIN

from cluster.broker.fetch import FetchHandler
from cluster.broker.markers import MarkerHandler
from cluster.broker.metadata_view import describe_brokers, describe_topics
from cluster.broker.produce import ProduceHandler
from cluster.broker.retention import Retention
from cluster.broker.txn_verify import TxnVerifier
from cluster.host.txn_owner import TxnOwner

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from suiro._proto.common_pb2 import Hello, Isolation
    from suiro.transport.api import Method, Peer, Stream

    from cluster.broker.producer_ids import ProducerIds
    from cluster.broker.replicas import Replicas
    from cluster.host.env import Env
    from cluster.host.metadata_feed import MetadataFeed
    from cluster.host.quorum_client import QuorumClient

    MetadataStream = Stream[pb.MetadataReply, pb.MetadataRequest]

CREATE_TIMEOUT_S = 10.0
FORWARD_TIMEOUT_S = 30.0


class BrokerService:
    """What clients and other brokers call."""

    def __init__(
        self,
        replicas: Replicas,
        feed: MetadataFeed,
        quorum: QuorumClient,
        producer_ids: ProducerIds,
        env: Env,
    ) -> None:
        self._replicas = replicas
        self._feed = feed
        self._quorum = quorum
        self._producer_ids = producer_ids
        verifier = TxnVerifier(TxnOwner(env, lambda: replicas.image))
        self._produce = ProduceHandler(replicas, verifier)
        self._markers = MarkerHandler(replicas, env.clock)
        self._fetch = FetchHandler(replicas)
        self._retention = Retention(replicas, env.clock)

    def routes(self) -> list[Route]:
        return [
            Route(BrokerMethods.METADATA, self.metadata),
            Route(BrokerMethods.WATCH_METADATA, self.watch_metadata),
            Route(BrokerMethods.PRODUCE, self._produce.produce),
            Route(BrokerMethods.PRODUCE_STREAM, self._produce.produce_stream),
            Route(BrokerMethods.NEW_PRODUCER, self.new_producer),
            Route(BrokerMethods.FETCH, self._fetch.fetch),
            Route(BrokerMethods.FETCH_STREAM, self._fetch.fetch_stream),
            Route(BrokerMethods.LIST_OFFSETS, self.list_offsets),
            Route(BrokerMethods.REPLICATE, self._replicas.hub.sender.replicate),
            Route(BrokerMethods.WRITE_TXN_MARKERS, self._markers.write_markers),
            Route(BrokerMethods.DELETE_RECORDS, self._retention.delete_records),
            Route(BrokerMethods.DESCRIBE_PRODUCERS, self.describe_producers),
        ]

    # -- metadata ---------------------------------------------------------------------------------

    async def metadata(self, request: pb.MetadataRequest, _peer: Peer) -> pb.MetadataReply:
        check_hello(request.hello)
        if request.create_missing:
            await self._create_missing(request.topics)
        await self._feed.settled()  # a partition that is shown as led here can be used
        return self._describe(request)

    async def watch_metadata(self, stream: MetadataStream, _peer: Peer) -> None:
        request = await stream.receive()
        if request is None:
            raise InvalidRequest("WatchMetadata needs a request")
        check_hello(request.hello)
        last: pb.MetadataReply | None = None
        while True:
            reply = self._describe(request)
            if last is None or not _same(reply, last):
                await stream.send(reply)
                last = reply
            await self._feed.changed()

    def _describe(self, request: pb.MetadataRequest) -> pb.MetadataReply:
        image = self._feed.image
        names = sorted(image.topics_by_name) if request.all_topics else request.topics
        return pb.MetadataReply(
            hello=self._replicas.hello_reply(),
            image_index=self._feed.index,
            brokers=describe_brokers(image),
            topics=describe_topics(image, names),
            active_controller=-1,
        )

    async def _create_missing(self, names: Iterable[str]) -> None:
        """Make topics that nobody made, where the cluster allows it."""
        image = self._feed.image
        missing = [name for name in names if image.topic(name) is None]
        allowed = broker_config(image.configs(ConfigResource.CLUSTER)).auto_create_topics_enable
        if not missing or not allowed:
            return
        request = admin.CreateTopicsRequest(topics=[admin.NewTopic(name=n) for n in missing])
        reply = await self._quorum.call(
            AdminMethods.CREATE_TOPICS, request, timeout_s=CREATE_TIMEOUT_S
        )
        made = [each.name for each in reply.results if not _is_refused(each)]
        try:
            async with asyncio.timeout(CREATE_TIMEOUT_S):
                while any(self._feed.image.topic(name) is None for name in made):
                    await self._feed.changed()
        except TimeoutError:
            return  # no news for long: the description says that it is not there, for now

    # -- producers --------------------------------------------------------------------------------

    async def new_producer(
        self, request: pb.NewProducerRequest, _peer: Peer
    ) -> pb.NewProducerReply:
        check_hello(request.hello)
        return pb.NewProducerReply(producer_id=await self._producer_ids.new_id(), producer_epoch=0)

    # -- offsets ----------------------------------------------------------------------------------

    async def list_offsets(
        self, request: pb.ListOffsetsRequest, _peer: Peer
    ) -> pb.ListOffsetsReply:
        answers = []
        for query in request.queries:
            try:
                answers.append(self._find_offset(query, request.isolation))
            except SuiroError as error:
                answers.append(pb.OffsetAnswer(error=error_to_proto(error), offset=-1))
        return pb.ListOffsetsReply(answers=answers)

    def _find_offset(self, query: pb.OffsetQuery, isolation: Isolation) -> pb.OffsetAnswer:
        partition = self._replicas.get(TopicPartition(query.topic, query.partition))
        latest = partition.latest(isolation)
        if query.WhichOneof("position") == "timestamp_ms":
            offset = partition.log.offset_for_timestamp(query.timestamp_ms)
            found = -1 if offset is None or offset >= latest else offset
        elif query.bound == pb.OffsetQuery.EARLIEST:
            found = partition.log.log_start
        elif query.bound == pb.OffsetQuery.LATEST:
            found = latest
        else:
            raise InvalidRequest(f"unknown bound {query.bound}")
        return pb.OffsetAnswer(offset=found, timestamp_ms=-1)

    # -- inspection -------------------------------------------------------------------------------

    async def describe_producers(
        self, request: pb.DescribeProducersRequest, _peer: Peer
    ) -> pb.DescribeProducersReply:
        partition = self._replicas.get(TopicPartition(request.topic, request.partition))
        stable = partition.latest(READ_COMMITTED)
        return pb.DescribeProducersReply(
            producers=[
                pb.ProducerState(
                    producer_id=state.producer_id,
                    producer_epoch=state.producer_epoch,
                    last_sequence=state.sent[-1].last_sequence if state.sent else -1,
                    last_timestamp_ms=state.seen_ms,
                    open_transaction_start=state.open_from,
                )
                for state in partition.log.producers.states()
            ],
            last_stable_offset=stable,
            high_watermark=partition.high_watermark,
        )


class AdminProxy:
    """Passes Admin calls on to the active controller, so that any broker's address is enough."""

    def __init__(self, quorum: QuorumClient) -> None:
        self._quorum = quorum

    def routes(self) -> list[Route]:
        methods = [m for name, m in vars(AdminMethods).items() if not name.startswith("_")]
        return [Route(method, self._forwarder(method)) for method in methods]

    def _forwarder(self, method: Method[Any, Any]) -> Callable[[Any, Peer], Awaitable[Any]]:
        async def forward(request: Any, _peer: Peer) -> Any:
            return await self._quorum.call(method, request, timeout_s=FORWARD_TIMEOUT_S)

        return forward


def check_hello(hello: Hello) -> None:
    """Refuse a client that speaks only other versions; an empty hello is a simple client's."""
    if hello.protocol_max and not (
        hello.protocol_min <= PROTOCOL_MAX and hello.protocol_max >= PROTOCOL_MIN
    ):
        raise UnsupportedVersion(
            f"this broker speaks versions {PROTOCOL_MIN} to {PROTOCOL_MAX}, "
            f"the client {hello.protocol_min} to {hello.protocol_max}"
        )


def _is_refused(created: admin.TopicResult) -> bool:
    """Nothing to wait for. One that somebody else has just made is on its way."""
    return bool(created.error.code) and not isinstance(error_from_proto(created.error), TopicExists)


def _same(one: pb.MetadataReply, other: pb.MetadataReply) -> bool:
    """Whether two answers differ only in how new they are."""
    return list(one.brokers) == list(other.brokers) and list(one.topics) == list(other.topics)
