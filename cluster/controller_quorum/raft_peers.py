"""The links between the controllers: one ordered stream to each of the others.

Every controller says who it is and where it can be reached when it opens a stream, so addresses
are learnt from their owners and a node that moves is found again. What it knows of the others it
passes on, so that a new controller need be told to one of them only; the owner's word goes before
hearsay. A link is to an address; who is there, its welcome says.

Messages to a member that no link leads to, and messages that do not fit into a link's queue, are
dropped: Raft repeats what matters.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from suiro._proto.common_pb2 import NodeAddress
from suiro._proto.raft_pb2 import RaftEnvelope, RaftWelcome
from suiro.cancellation import heed_cancellation
from suiro.model.error_base import SuiroError
from suiro.model.errors import InvalidRequest, Unavailable
from suiro.model.ids import Address, NodeId
from suiro.transport.api import Peer, Route
from suiro.transport.methods import RaftMethods

from cluster.controller_quorum.conf import DirectoryId, Member
from cluster.controller_quorum.directory import id_text
from cluster.controller_quorum.raft_wire import message_from_wire, message_to_wire
from cluster.host.hello import check_cluster, check_hello, make_hello

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from random import Random

    from suiro.transport.api import Stream, Transport

    from cluster.controller_quorum.messages import Message

log = logging.getLogger("suiro.quorum")

QUEUE_MESSAGES_MAX: Final = 1_024
"""Of one link; far more than the core has under way to one follower."""

ENVELOPE_MESSAGES_MAX: Final = 32
"""An append is at most about a MiB, so an envelope stays well below gRPC's limit."""

HELLO_TIMEOUT_S: Final = 2.0
SEND_TIMEOUT_S: Final = 5.0
"""A stream that takes nothing for so long is dropped; a new one may reach a living process."""

BACKOFF_S_MIN: Final = 0.02
BACKOFF_S_MAX: Final = 0.5
IDLE_S: Final = 5.0
"""Before asking again at an address where this node itself answers."""


@dataclass(frozen=True, slots=True)
class Self:
    """Who this controller is to the others."""

    cluster_id: str
    member: Member
    directory_id: bytes
    address: Address


class RaftPeers:
    """All links of one controller, outgoing ones and those of the others."""

    def __init__(
        self,
        me: Self,
        transport: Transport,
        rng: Random,
        seeds: Iterable[Address],
        known: Mapping[NodeId, Address],
    ) -> None:
        self._me = me
        self._transport = transport
        self._rng = rng
        self._seeds = tuple(seeds)
        self.addresses = dict(known)
        """Where each controller was last known to be."""
        self.on_message: Callable[[Message], None] = _nobody_listens
        self.on_address: Callable[[NodeId, Address], None] = _nobody_notes
        self._members: tuple[Member, ...] = ()
        self._callers: Counter[NodeId] = Counter()
        """Whose streams are open here. They want answers, also of one that does not know yet that
        it is a member.
        """
        self._links: dict[Address, _Link] = {}
        self._tasks: dict[Address, asyncio.Task[None]] = {}
        self._routes: dict[Member, _Link] = {}
        self._changed = asyncio.Event()

    # -- sending ----------------------------------------------------------------------------------

    def send(self, messages: Sequence[Message]) -> None:
        for message in messages:
            link = self._routes.get(message.target)
            if link is not None:
                link.put(message)

    def set_members(self, members: tuple[Member, ...]) -> None:
        """Keep links to these, to the seeds and to those who call, and to nobody else."""
        if members != self._members:
            self._members = members
            self._changed.set()

    def set_address(self, node_id: NodeId, address: Address) -> None:
        if self.addresses.get(node_id) != address:
            self.addresses[node_id] = address
            self.on_address(node_id, address)
            self._changed.set()
            for link in self._links.values():
                link.put_news()

    def _hear(self, known: Iterable[NodeAddress]) -> None:
        """Somebody's word about others."""
        for told in known:
            node_id = NodeId(told.node_id)
            if node_id not in self.addresses and node_id != self._me.member.node:
                self.set_address(node_id, Address(told.host, told.port))

    def _known(self) -> list[NodeAddress]:
        return [_wire_address(*known) for known in sorted(self.addresses.items())]

    async def run(self) -> None:
        """Own the links until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._changed.clear()
                wanted = self._wanted()
                for address in [a for a in self._tasks if a not in wanted]:
                    self._tasks.pop(address).cancel()
                    del self._links[address]
                for address in wanted:
                    if address not in self._tasks:
                        link = self._links[address] = _Link(address)
                        self._tasks[address] = tasks.create_task(
                            self._keep(link), name=f"link to {address}"
                        )
                await self._changed.wait()

    async def who_is_at(self, address: Address) -> Member:
        """Ask the controller at an address for its identity."""
        async with asyncio.timeout(HELLO_TIMEOUT_S):
            stream = await self._transport.open(address, RaftMethods.STEP)
            try:
                return await self._introduce(stream, address)
            finally:
                stream.cancel()

    def _wanted(self) -> list[Address]:
        others = (*(member.node for member in self._members), *sorted(self._callers))
        known = [self.addresses[node_id] for node_id in others if node_id in self.addresses]
        return [a for a in dict.fromkeys((*self._seeds, *known)) if a != self._me.address]

    async def _keep(self, link: _Link) -> None:
        """Connect, speak until the stream breaks, connect again."""
        backoff_s = BACKOFF_S_MIN
        while True:
            said = ""
            try:
                async with asyncio.timeout(HELLO_TIMEOUT_S):
                    stream = await self._transport.open(link.address, RaftMethods.STEP)
                    peer = await self._introduce(stream, link.address)
                backoff_s = BACKOFF_S_MIN
                await self._use(link, stream, peer)
            except SuiroError as error:
                said = str(error)
            except TimeoutError:
                said = "no answer in time"
            heed_cancellation()
            if said != link.complaint:
                link.complaint = said
                log.warning("link to the controller at %s: %s", link.address, said or "closed")
            await asyncio.sleep(backoff_s * (0.5 + self._rng.random()))
            backoff_s = min(backoff_s * 2, BACKOFF_S_MAX)

    async def _introduce(self, stream: Stream[Any, Any], address: Address) -> Member:
        me = self._me
        await stream.send(
            RaftEnvelope(
                hello=make_hello(me.cluster_id, me.member.node),
                directory_id=me.directory_id,
                address=_wire_address(me.member.node, me.address),
                known=self._known(),
            )
        )
        welcome = await stream.receive()
        if welcome is None:
            raise Unavailable(f"the controller at {address} closed the stream without a welcome")
        check_cluster(welcome.hello.cluster_id, me.cluster_id)
        peer = _member(welcome.hello.node_id, welcome.directory_id)
        if peer.node not in self.addresses:
            self.set_address(peer.node, address)
        return peer

    async def _use(self, link: _Link, stream: Stream[Any, Any], peer: Member) -> None:
        if peer.node == self._me.member.node:
            if peer != self._me.member:
                log.error("another controller with the id %s is at %s", peer.node, link.address)
            stream.cancel()
            await asyncio.sleep(IDLE_S)
            return
        log.info("linked to controller %s at %s", peer, link.address)
        link.complaint = ""
        link.clear()
        former = self._routes.setdefault(peer, link)
        if former.address not in self._links:
            self._routes[peer] = link
        try:
            await self._speak_until_broken(link, stream)
        finally:
            if self._routes.get(peer) is link:
                del self._routes[peer]
            stream.cancel()

    async def _speak_until_broken(self, link: _Link, stream: Stream[Any, Any]) -> None:
        """Send what is put into the link; an idle stream is watched, so a break is seen at once."""
        failures: list[Exception] = []
        try:
            async with asyncio.TaskGroup() as tasks:
                speaking = tasks.create_task(self._speak(link, stream), name=f"to {link.address}")
                await stream.receive()
                speaking.cancel()
        except* (SuiroError, TimeoutError) as group:
            failures += group.exceptions
        if failures:
            raise failures[0]

    async def _speak(self, link: _Link, stream: Stream[Any, Any]) -> None:
        while True:
            messages, has_news = await link.take()
            envelope = RaftEnvelope(
                messages=[message_to_wire(message) for message in messages],
                known=self._known() if has_news else (),
            )
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await stream.send(envelope)

    # -- being spoken to --------------------------------------------------------------------------

    def routes(self) -> list[Route]:
        return [Route(RaftMethods.STEP, self.handle_step)]

    async def handle_step(self, stream: Stream[Any, Any], _peer: Peer) -> None:
        """A peer's stream: check who it is, then hand on what it says."""
        me = self._me
        first = await stream.receive()
        if first is None or not first.HasField("hello"):
            raise InvalidRequest("a stream of the quorum begins with a hello")
        reply = check_hello(first.hello, me.cluster_id, me.member.node)
        source = _member(first.hello.node_id, first.directory_id)
        if first.HasField("address") and source.node != me.member.node:
            self.set_address(source.node, Address(first.address.host, first.address.port))
        self._hear(first.known)
        await stream.send(RaftWelcome(hello=reply, directory_id=me.directory_id))
        self._callers[source.node] += 1
        self._changed.set()
        try:
            while (envelope := await stream.receive()) is not None:
                self._hear(envelope.known)
                for message in envelope.messages:
                    self.on_message(message_from_wire(message, source, me.member))
        finally:
            self._callers[source.node] -= 1
            self._callers += Counter()  # forget those at zero
            self._changed.set()


class _Link:
    """What waits to be sent to one address."""

    __slots__ = ("_arrived", "_has_news", "_queue", "address", "complaint")

    def __init__(self, address: Address) -> None:
        self.address = address
        self.complaint = ""
        """The last reason of a break, so that it is logged once."""
        self._queue: deque[Message] = deque()
        self._arrived = asyncio.Event()
        self._has_news = False

    def put_news(self) -> None:
        """Addresses have changed: tell the other side."""
        self._has_news = True
        self._arrived.set()

    def put(self, message: Message) -> None:
        if len(self._queue) < QUEUE_MESSAGES_MAX:
            self._queue.append(message)
            self._arrived.set()

    def clear(self) -> None:
        self._queue.clear()

    async def take(self) -> tuple[list[Message], bool]:
        """Messages that wait, as many as fit into an envelope, and whether there is news."""
        while not self._queue and not self._has_news:
            self._arrived.clear()
            await self._arrived.wait()
        count = min(len(self._queue), ENVELOPE_MESSAGES_MAX)
        has_news, self._has_news = self._has_news, False
        return [self._queue.popleft() for _ in range(count)], has_news


def _member(node_id: int, directory_id: bytes) -> Member:
    return Member(NodeId(node_id), DirectoryId(id_text(directory_id)))


def _wire_address(node_id: NodeId, address: Address) -> NodeAddress:
    return NodeAddress(node_id=node_id, host=address.host, port=address.port)


def _nobody_listens(_message: Message) -> None:
    """Until the driver does, messages are lost."""


def _nobody_notes(_node_id: NodeId, _address: Address) -> None:
    """Until somebody does, addresses are kept in memory only."""
