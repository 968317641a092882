"""The life of a broker in the replication simulation: it starts, registers, beats, dies.

What is on its disk outlives it: the log, the saved high watermark, the mark of a clean shutdown.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final

from suiro.model.ids import NO_BROKER_EPOCH, BrokerEpoch, NodeId, Offset
from suiro.model.image import ClusterImage
from suiro.model.records import PartitionChanged, PartitionCreated

from cluster.controller_quorum.metadata_requests import Heartbeat, Standing
from cluster.host.lease import Lease
from tests.sim.replication_controller import CONTROLLER, SESSION_MS, TOPIC
from tests.sim.replication_log import MemoryLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from suiro.model.records import PartitionState

    from tests.sim.replication_net import Stream
    from tests.sim.replication_world import World

TICK_MS: Final = 500
LEASE_MARGIN_MS: Final = 150


class Life(ABC):
    """One broker through all its lives."""

    def __init__(self, world: World, node: NodeId) -> None:
        self.world = world
        self.node = node
        self.life = 0
        self.is_up = False
        self.is_leaving = False
        self.paused_until = 0
        self.feed_blocked_until = 0
        self.clock_rate = 1.0
        self.clock_offset = 0
        self.log = MemoryLog()
        self.saved_high_watermark = Offset(0)
        self.clean_epoch: BrokerEpoch | None = None
        self.has_lost = False
        """Lost a tail or the disk, and the controller has not registered it since."""
        self.lost_in_last_life = False
        self.be_born()

    def be_born(self) -> None:
        """All that a process knows when it starts."""
        self.image = ClusterImage()
        self.image_index = 0
        self.registered_index = -1
        self.broker_epoch: BrokerEpoch = NO_BROKER_EPOCH
        self.high_watermark = min(self.saved_high_watermark, self.log.log_end)
        self.lease = Lease(LEASE_MARGIN_MS)
        self.session_stream = 0
        self.streams_out: dict[NodeId, Stream] = {}
        self.streams_in: dict[int, Stream] = {}

    @abstractmethod
    def take_role(self, state: PartitionState) -> None:
        """The metadata say something about the partition."""

    @abstractmethod
    def tick(self) -> None:
        """Some time has passed."""

    # -- time and life ----------------------------------------------------------------------------

    @property
    def now_ms(self) -> int:
        return int(self.world.now * self.clock_rate) + self.clock_offset

    def later(self, delay: int, action: Callable[..., None], *arguments: Any) -> None:
        """In this life; a paused process does it when it wakes."""
        self.world.at(delay, self._act, self.life, action, arguments)

    def _act(self, life: int, action: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        if self.life != life or not self.is_up:
            return
        if self.paused_until > self.world.now:
            self.later(
                self.paused_until - self.world.now + self.world.random.randrange(20),
                action,
                *arguments,
            )
            return
        action(*arguments)

    def start(self) -> None:
        if self.is_up:
            return
        self.life += 1
        self.is_up = True
        self.is_leaving = False
        self.paused_until = 0
        self.world.note("start", self.node)
        clean_epoch, self.clean_epoch = self.clean_epoch, None
        self.be_born()
        self._register(clean_epoch)
        self.later(self.world.random.randrange(TICK_MS), self._tick)

    def crash(self, end: Offset | None = None) -> None:
        """The process is gone; with an `end`, so is what was beyond it. A disk may be gone."""
        if not self.is_up:
            return
        self.is_up = False
        lost = end is not None and end < self.log.log_end
        self.log.stop(self.log.log_end if end is None else end)
        if lost:
            self.world.checker.on_lost(self.node)
            if not self.world.plan.syncs_first:  # else it had promised nothing about its tail
                self.has_lost = True
        for stream in (*self.streams_out.values(), *self.streams_in.values()):
            stream.close(100 if end is None else 2_000)
        if end is None and (self.node, CONTROLLER) not in self.world.cut:
            controller = self.world.controller
            self.world.at(
                10, controller.on_process_gone, self.node, self.broker_epoch, self.session_stream
            )

    def wipe(self) -> None:
        self.crash(self.log.log_end)
        if self.log.log_end > 0:
            self.has_lost = True
        self.log.wipe()
        self.saved_high_watermark = Offset(0)
        self.world.checker.on_lost(self.node)

    def is_fenced_by_controller(self) -> bool:
        node = self.world.controller.machine.image.nodes.get(self.node)
        return node is None or node.fenced or node.broker_epoch != self.broker_epoch

    # -- the controller ---------------------------------------------------------------------------

    def _register(self, clean_epoch: BrokerEpoch | None) -> None:
        if self.broker_epoch != NO_BROKER_EPOCH:
            return
        controller = self.world.controller
        self.world.send(self.node, CONTROLLER, controller.on_register, self, self.life, clean_epoch)
        self.later(300, self._register, clean_epoch)

    def on_registered(self, life: int, broker_epoch: BrokerEpoch, index: int) -> None:
        if life != self.life or self.broker_epoch != NO_BROKER_EPOCH:
            return
        self.broker_epoch = broker_epoch
        self.registered_index = index
        self.session_stream = self.world.next_number()
        self._heartbeat()
        self.world.feed(self)

    def _heartbeat(self) -> None:
        if self.broker_epoch == NO_BROKER_EPOCH:
            return
        heartbeat = Heartbeat(
            self.node,
            self.broker_epoch,
            ready=self.image_index >= self.registered_index,
            want_shutdown=self.is_leaving,
        )
        controller = self.world.controller
        facts = (heartbeat, self.session_stream, self.now_ms)
        self.world.send(self.node, CONTROLLER, controller.on_heartbeat, self, *facts)

    def on_notice(self, facts: tuple[int, int, int, int], standing: Standing) -> None:
        life, stream, sent_ms, committed_index = facts
        if life != self.life or stream != self.session_stream:
            return
        self.lease.on_notice(
            sent_ms=sent_ms,
            session_timeout_ms=SESSION_MS,
            committed_index=committed_index,
            fenced=standing.fenced,
        )
        if self.is_leaving and standing.may_shut_down:
            self._shut_down()

    def on_session_lost(self) -> None:
        """The session stream broke; the next heartbeat opens another."""
        self.session_stream = self.world.next_number()
        self._heartbeat()

    def _shut_down(self) -> None:
        self.world.note("clean shutdown", self.node)
        self.saved_high_watermark = self.high_watermark
        broker_epoch = self.broker_epoch
        self.log.synced_end = self.log.log_end
        self.crash()
        self.clean_epoch = broker_epoch

    def on_feed(self, index: int) -> None:
        """The committed records up to `index`; the role follows every one, or only the last."""
        if index <= self.image_index or self.feed_blocked_until > self.world.now:
            return
        if (CONTROLLER, self.node) in self.world.cut:
            return
        one_by_one = self.world.random.random() < 0.5
        records = self.world.controller.log[self.image_index : index]
        self.image_index = index
        for record in records:
            self.image.apply(record)
            if one_by_one and isinstance(record, PartitionChanged | PartitionCreated):
                self.take_role(record.state)
        self.lease.on_image(index)
        state = self.image.partition(TOPIC, 0)
        if state is not None:
            self.take_role(state)

    def _tick(self) -> None:
        self.later(TICK_MS, self._tick)
        self._heartbeat()
        if self.image_index < len(self.world.controller.log):
            self.world.feed(self)
        self.tick()
