"""One controller: a member of the quorum, and the cluster's metadata while it leads.

Everything that a controller does is a task of `run`. While this one leads, a `MachineHost` serves
the machine; what the other controllers are asked they refuse, with a hint at who leads. A reply
leaves only when what it tells is committed, and a reply that wrote nothing only when the quorum has
confirmed that this controller still led after the question came: one that was stopped and woken up
again tells nobody yesterday's news.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from suiro._proto.admin_pb2 import DescribeQuorumRequest
from suiro.model.codec import encode
from suiro.model.error_base import SuiroError
from suiro.model.errors import NotController, TimedOut, Unavailable
from suiro.model.limits import COMMIT_WAIT_MS_MAX
from suiro.transport.methods import AdminMethods

from cluster.controller_quorum.admin_service import AdminService
from cluster.controller_quorum.background import Background
from cluster.controller_quorum.calls import CallsService
from cluster.controller_quorum.conf import DirectoryId, Member
from cluster.controller_quorum.feed import Feed
from cluster.controller_quorum.membership import Membership
from cluster.controller_quorum.metadata_requests import UncleanElection
from cluster.controller_quorum.quorum_metrics import QuorumMetrics
from cluster.controller_quorum.raft import Raft
from cluster.controller_quorum.raft_driver import RaftDriver
from cluster.controller_quorum.raft_peers import RaftPeers, Self
from cluster.controller_quorum.raft_state import RaftConfig
from cluster.controller_quorum.raft_store import RaftStore, StoreOwner
from cluster.controller_quorum.replica import MetadataReplica
from cluster.controller_quorum.service import ControllerService
from cluster.controller_quorum.session_shell import SessionKeeper
from cluster.host.machine import Decision
from cluster.host.machine_host import MachineHost

if TYPE_CHECKING:
    from collections.abc import Callable

    from suiro.model.ids import Address, NodeId
    from suiro.transport.api import Service

    from cluster.config import NodeConfig
    from cluster.controller_quorum.metadata import MetadataMachine
    from cluster.controller_quorum.raft import RaftStatus
    from cluster.host.env import Env
    from cluster.storage import Identity

log = logging.getLogger("suiro.quorum")

R = TypeVar("R")

QUORUM_STORE: Final = "quorum"
TICKS_PER_ELECTION: Final = 10
CATCH_UP_LOOK_S: Final = 0.05
CATCH_UP_ASK_S: Final = 2.0

RAFT_CONFIG: Final = RaftConfig(
    election_ticks=TICKS_PER_ELECTION, appends_in_flight_max=1, announce_commits=False
)
"""One append under way to each follower: what is decided meanwhile goes into the next one. With 16
clients that is 0.25 appends a change instead of 1.13, at a tenth more latency; and it is messages
that cost the leader its CPU. For the same reason commits are not announced: that was four appends
in ten. A feed that is served by a follower is up to a heartbeat (60 ms) later for it when nothing
else happens.
"""


@dataclass(frozen=True, slots=True)
class ControllerStatus:
    """A cheap look from outside."""

    is_active: bool
    leader: NodeId | None
    raft: RaftStatus


class Controller:
    """`services` for the node's server, `run` as one of its tasks."""

    def __init__(self, config: NodeConfig, identity: Identity, env: Env) -> None:
        me = Member(identity.node_id, DirectoryId(identity.directory_name))
        self.cluster_id = identity.cluster_id
        self.node_id = identity.node_id
        self.address = config.advertised
        self.env = env
        self._config = config
        self._store = RaftStore(env.open_store(config.data_dir / QUORUM_STORE))
        stored = self._store.load(StoreOwner(identity.cluster_id, me.node, me.directory))
        self.peers = RaftPeers(
            Self(identity.cluster_id, me, identity.directory_id, config.advertised),
            env.transport,
            env.rng,
            config.controllers,
            self._store.addresses(),
        )
        self._metrics = QuorumMetrics(env.metrics, env.clock)
        raft = Raft(me, RAFT_CONFIG, stored, env.rng)
        self.driver = RaftDriver(raft, self._store, env, self._send, self._metrics)
        self.feed = Feed(self.driver)
        self.replica = MetadataReplica(
            self.driver, self._store, env, self._metrics, self.feed.on_moved
        )
        self._host: MachineHost[MetadataMachine] = MachineHost(self.driver, encode, self._perform)
        self._is_serving = False
        self.replica.on_lost = self._host.stop
        self.peers.on_message = self.driver.step
        self.peers.on_address = self._note_address
        self._noted: dict[NodeId, Address] = {}
        self._noted_some = asyncio.Event()
        self.sessions = SessionKeeper(self, config.session_timeout_ms)
        self.membership = Membership(self.driver, self.peers)
        self._background = Background(self, self._metrics)

    def services(self) -> list[Service]:
        asked: list[Service] = [ControllerService(self), AdminService(self)]
        return [*asked, CallsService(asked, self.env.spans), self.peers]

    def status(self) -> ControllerStatus:
        return ControllerStatus(self._is_serving, self.driver.leader, self.driver.raft.status())

    async def run(self) -> None:
        """Until cancelled; raises when a write failed, and then the process must end."""
        config = self._config
        tick_s = config.election_timeout_ms / TICKS_PER_ELECTION / 1000
        self.peers.set_members(self.driver.raft.conf.members)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.driver.run(self.replica), name="quorum")
                tasks.create_task(self.driver.tick_forever(tick_s), name="quorum's clock")
                tasks.create_task(self.peers.run(), name="quorum's links")
                tasks.create_task(
                    self.replica.snapshot_forever(
                        config.quorum_snapshot_entries, config.quorum_snapshot_bytes
                    ),
                    name="snapshots",
                )
                tasks.create_task(self._save_addresses(), name="addresses")
                tasks.create_task(self._background.watch_leader(), name="watch the leader")
                tasks.create_task(self._reign_forever(), name="reign")
        finally:
            self._store.close()

    async def caught_up(self) -> None:
        """Return once this controller has what its leader had agreed on when it was asked: whoever
        restarts controllers in turn may go on then.
        """
        while True:
            index = await self._commit_of_leader()
            if index is not None and index < self.driver.end:
                return
            await asyncio.sleep(CATCH_UP_LOOK_S)

    async def _commit_of_leader(self) -> int | None:
        leader = self.driver.leader
        if leader == self.node_id:
            return self.driver.end - 1 if self._is_serving else None
        address = None if leader is None else self.peers.addresses.get(leader)
        if address is None:
            return None
        try:
            told = await self.env.transport.call(
                address,
                AdminMethods.DESCRIBE_QUORUM,
                DescribeQuorumRequest(),
                timeout_s=CATCH_UP_ASK_S,
            )
        except SuiroError:
            return None  # it may have died: ask who leads now
        return int(told.commit_index) if told.leader == leader else None

    # -- asking the machine -----------------------------------------------------------------------

    @property
    def is_serving(self) -> bool:
        return self._is_serving

    async def decide(self, choose: Callable[[MetadataMachine], Decision[R]]) -> R:
        """Let the machine decide, if this controller leads; see the module's promise."""
        has_written = has_chosen = False

        def chosen(machine: MetadataMachine) -> Decision[R]:
            nonlocal has_written, has_chosen
            has_chosen = True
            decision = choose(machine)
            has_written = bool(decision.records)
            return decision

        if not self._is_serving:
            raise self.not_controller()
        try:
            reply = await self._host.decide(chosen)
        except NotController:
            raise self.not_controller() from None
        except SuiroError:
            if has_chosen and not has_written:
                await self._confirm()  # a refusal is a reply too
            raise
        if not has_written:
            await self._confirm()
        return reply

    async def read(self, look: Callable[[MetadataMachine], R]) -> R:
        return await self.decide(lambda machine: Decision((), look(machine)))

    def not_controller(self) -> NotController:
        """Who leads and where, as far as this controller knows."""
        leader = self.driver.leader
        error = NotController(None if leader == self.node_id else leader)
        if leader in self.peers.addresses:
            error.hints["address"] = str(self.peers.addresses[leader])
        return error

    def quorum_addresses(self) -> dict[NodeId, Address]:
        """Where the members of the quorum are, as far as this controller knows."""
        known = self.peers.addresses | {self.node_id: self.address}
        nodes = sorted(member.node for member in self.driver.raft.conf.members)
        return {node: known[node] for node in nodes if node in known}

    async def _confirm(self) -> None:
        try:
            async with asyncio.timeout(COMMIT_WAIT_MS_MAX / 1000):
                await self.driver.confirm()
        except TimeoutError:
            raise TimedOut("the quorum did not confirm its leader in time") from None
        except NotController:
            raise self.not_controller() from None

    # -- leading ----------------------------------------------------------------------------------

    async def _reign_forever(self) -> None:
        while True:
            await self.driver.elected()
            position = self.driver.open()
            if position is None:
                continue
            await self._reign(position)

    async def _reign(self, position: int) -> None:
        machine = self.replica.begin_serving()
        self.sessions.begin(machine.image, position - 1)
        log.info("controller %s leads from index %d", self.node_id, position)
        self._set_serving(True)
        try:
            async with asyncio.TaskGroup() as tasks:
                fencing = tasks.create_task(self.sessions.fence_forever(), name="fencing")
                tending = tasks.create_task(self._background.tend_forever(), name="background")
                error = await self._host.serve(machine, position)
                fencing.cancel()
                tending.cancel()
        finally:
            self._set_serving(False)
            self.driver.close()
            self.replica.end_serving()
        log.info("controller %s no longer leads: %s", self.node_id, error)

    def _set_serving(self, serving: bool) -> None:
        self._is_serving = serving
        self._metrics.on_serving(serving)
        if self.env.events.on:
            self.env.events.emit("serving", serving=serving, term=self.driver.raft.status().term)

    def _perform(self, effect: Any) -> None:
        assert isinstance(effect, UncleanElection)
        self._metrics.on_unclean_election()
        log.error(
            "UNCLEAN ELECTION: %s is led by %s, the in-sync replicas were %s: records may be lost",
            effect.partition,
            effect.leader,
            effect.former_isr,
        )

    # -- the others -------------------------------------------------------------------------------

    def _send(self, messages: Any) -> None:
        self.peers.set_members(self.driver.raft.conf.members)
        self.peers.send(messages)

    def _note_address(self, node_id: NodeId, address: Address) -> None:
        self._noted[node_id] = address
        self._noted_some.set()

    async def _save_addresses(self) -> None:
        """Remember where the others are, for the next start."""
        while True:
            await self._noted_some.wait()
            self._noted_some.clear()
            noted, self._noted = self._noted, {}
            await self.env.offload.run(partial(self._store.save_addresses, noted))

    def cut_off_followers(self) -> None:
        """What this controller knows may be old by now: let those who follow it ask others."""
        self.feed.interrupt(Unavailable("this controller has lost touch with the quorum"))
