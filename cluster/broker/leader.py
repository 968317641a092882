"""What a leader knows of its followers, and what follows: high watermark, ISR, what to send.

Pure: facts and `now_ms` in, effects out. A replica *holds* a record when it would survive what the
topic's flush policy promises: once appended, or once synced where the policy is `ack`.

Always: the high watermark never goes back, and is at most what every member of the *maximal* ISR
holds: those the controller has committed, and those of any proposal whose outcome is not known, as
the controller may elect any of them at any moment. What a follower holds counts only if that
incarnation of it said so in this leader epoch. The ISR is changed by the controller alone; the
leader proposes, one proposal at a time, and goes by what the metadata say (DESIGN.md section 6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from suiro.model.errors import (
    BrokerFenced,
    FencedLeaderEpoch,
    InvalidRequest,
    NotEnoughReplicas,
    NotLeader,
    OffsetNotAvailable,
    StaleBrokerEpoch,
    StalePartitionEpoch,
    UnknownLeaderEpoch,
)
from suiro.model.ids import NO_BROKER_EPOCH, PartitionEpoch

from cluster.broker.replication_effects import (
    EpochStarted,
    HighWatermark,
    IsrChanged,
    LeaderEffect,
    ProposedMember,
    ProposeIsr,
    Push,
    Ready,
    Refuse,
)
from cluster.broker.replication_epochs import divergence
from cluster.broker.replication_progress import NO_STREAM, Progress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suiro.model.error_base import SuiroError
    from suiro.model.ids import BrokerEpoch, NodeId, Offset, TopicPartition
    from suiro.model.image import Node
    from suiro.model.records import PartitionState

    from cluster.broker.replication_epochs import LogView, Position

REPLICA_LAG_TIME_MAX_MS: Final = 10_000
"""Longer than a session: a broker that hangs is fenced, this is for one that is merely slow."""

PROPOSAL_RETRY_MS: Final = 500
"""After a refusal or no answer: by then the metadata have usually told why."""

PAUSE_MS: Final = 2_000
"""A leader that was not ticked for so long did not run: what it missed is not its followers' lag.
"""

NEVER: Final = PartitionEpoch(-1)

_REFUSALS: Final = (
    BrokerFenced,
    FencedLeaderEpoch,
    InvalidRequest,
    NotLeader,
    StaleBrokerEpoch,
    StalePartitionEpoch,
)
"""The controller decided, and against it. Anything else leaves open what it decided."""


class Leader:
    """One partition in one leader epoch.

    `log` is looked at and never touched, `high_watermark` is what this replica has heard of it,
    `nodes` the broker's image of who is alive, which the metadata keep up to date.
    """

    def __init__(
        self,
        partition: TopicPartition,
        node: NodeId,
        state: PartitionState,
        *,
        log: LogView,
        high_watermark: Offset,
        nodes: Mapping[NodeId, Node],
    ) -> None:
        assert state.leader == node
        self.partition = partition
        self.state = state
        self.high_watermark = min(high_watermark, log.log_end)  # a lost tail may have been below it
        self.epoch_start = log.log_end
        self.lag_time_max_ms = REPLICA_LAG_TIME_MAX_MS
        """A setting of the broker; may be replaced while running."""
        self._node = node
        self._log = log
        self._log_end = log.log_end
        self._nodes = nodes
        self._held_end: Offset | None = None
        self._followers: dict[NodeId, Progress] = {}
        self._pending: ProposeIsr | None = None
        self._uncertain: tuple[NodeId, ...] = ()
        self._retry_ms = 0
        self._ticked_ms = 0

    def start(self, held_end: Offset, now_ms: int) -> list[LeaderEffect]:
        """Begin. Everyone in the ISR has the lag time to be heard in."""
        self._ticked_ms = now_ms
        self._keep_followers(now_ms)
        started = EpochStarted(self.state.leader_epoch, self.epoch_start)
        return [started, *self.on_held(held_end)]

    def solicit(self) -> list[LeaderEffect]:
        """Ask every follower where its log is."""
        return [self._solicit(node) for node in self._followers]

    # -- what may be answered ---------------------------------------------------------------------

    @property
    def high_watermark_known(self) -> bool:
        """A new leader may have heard of a lower high watermark than its predecessor's readers.
        Theirs is not above its own log, so once all of that is committed it knows (P10).
        """
        return self.high_watermark >= self.epoch_start

    def check_high_watermark(self) -> None:
        """Refuse to say what the latest offset is, or that there is nothing behind it."""
        if not self.high_watermark_known:
            raise OffsetNotAvailable(
                f"{self.partition}: leader epoch {self.state.leader_epoch} has committed up to "
                f"{self.high_watermark} of the {self.epoch_start} it began with"
            )

    def check_acks_all(self, min_isr: int) -> None:
        """Refuse acks=all while too few replicas are in sync: before the append and, as the ISR may
        have shrunk since, before the answer.
        """
        if len(self.state.isr) < min_isr:
            isr = ", ".join(map(str, self.state.isr))
            raise NotEnoughReplicas(
                f"{self.partition}: in sync are [{isr}], min.insync.replicas is {min_isr}"
            )

    def is_committed(self, end: Offset, min_isr: int) -> bool:
        """Whether acks=all may be answered for what ends at `end`; raises if too few hold it."""
        if self.high_watermark < end:
            return False
        self.check_acks_all(min_isr)
        return True

    @property
    def maximal_isr(self) -> list[NodeId]:
        """Everyone whom the controller may take for in sync."""
        if self._pending is None and not self._uncertain:
            return sorted(self.state.isr)
        pending = () if self._pending is None else self._pending.nodes
        return sorted({*self.state.isr, *self._uncertain, *pending})

    def lag(self, node: NodeId) -> int | None:
        """How many offsets a follower is behind; None while it has not said what it holds."""
        held = self._followers[node].held
        return None if held is None else max(0, self._log.log_end - held)

    # -- facts about this broker ------------------------------------------------------------------

    def on_appended(self, now_ms: int) -> list[LeaderEffect]:
        """The log has grown; that this broker holds it comes with `on_held`."""
        for progress in self._followers.values():
            progress.on_leader_append(self._log_end, now_ms)
        self._log_end = self._log.log_end
        return self._ready()

    def on_held(self, held_end: Offset) -> list[LeaderEffect]:
        """This broker holds its own log up to `held_end`."""
        assert held_end <= self._log.log_end
        self._held_end = held_end
        return self._advance()

    # -- facts about the followers ----------------------------------------------------------------

    def on_position(
        self,
        node: NodeId,
        stream: int,
        broker_epoch: BrokerEpoch,
        position: Position,
    ) -> list[LeaderEffect]:
        """A follower announces itself. `stream` is a number that rises with every stream that this
        broker accepts: what a superseded one, or one of an earlier incarnation, still brings does
        not count.
        """
        refusal = self._refusal(node, position)
        if refusal is not None:
            return [Refuse(node, refusal, stream)]
        progress = self._followers[node]
        if (broker_epoch, stream) < (progress.broker_epoch, progress.stream):
            superseded = StaleBrokerEpoch(f"{self.partition}: node {node} has come back since")
            return [Refuse(node, superseded, stream)]
        progress.on_position(stream, broker_epoch, position, divergence(self._log, position))
        return [Ready(node, stream)]

    def on_ack(
        self, node: NodeId, stream: int, leader_epoch: int, held_end: Offset, now_ms: int
    ) -> list[LeaderEffect]:
        """A follower holds everything below `held_end`. It counts if it said so in this epoch, and
        on the stream on which its log was found to match.
        """
        progress = self._followers.get(node)
        if (
            progress is None
            or leader_epoch != self.state.leader_epoch
            or stream != progress.stream
            or not progress.matches
        ):
            return []
        log_end = self._log.log_end
        progress.on_ack(min(held_end, log_end), log_end, now_ms)
        joins = [] if node in self.state.isr else self._propose(now_ms)  # who lags, `tick` finds
        return [*self._advance(), *joins, *self._ready(node)]

    def on_stream_closed(self, node: NodeId, stream: int) -> None:
        """The follower is gone for now; what it holds it still holds."""
        progress = self._followers.get(node)
        if progress is not None and progress.stream == stream:
            progress.on_stream_closed()

    def next_push(self, node: NodeId) -> Push | None:
        """What to send to a follower now, with the high watermark and the log start of now."""
        progress = self._followers.get(node)
        return None if progress is None else progress.next_push(self._log)

    def on_pushed(self, node: NodeId, end: Offset) -> None:
        """What `next_push` said is on its way; `end` is the offset after its last batch, or
        anything for a part without batches.
        """
        self._followers[node].on_pushed(end, self.high_watermark, self._log.log_start)

    def is_catching_up(self, node: NodeId) -> bool:
        """Whether a follower is still outside the ISR: those inside are served first."""
        return node not in self.state.isr

    def is_being_added(self, node: NodeId) -> bool:
        """Whether a reassignment brings this follower in, and nobody waits for it yet: what it is
        sent may be throttled. Once the controllers may take it for in sync it may not.
        """
        moving = self.state.reassignment
        return moving is not None and node in moving.adding and node not in self.maximal_isr

    # -- facts from the controller ----------------------------------------------------------------

    def on_state(self, state: PartitionState, now_ms: int) -> list[LeaderEffect]:
        """The metadata have a newer state of the partition, in the same leader epoch. Whatever was
        proposed before it has been decided on by now: a proposal holds for one partition epoch.
        """
        assert state.leader_epoch == self.state.leader_epoch
        if state.partition_epoch <= self.state.partition_epoch:
            return []
        before, self.state = self.state, state
        self._pending = None
        self._uncertain = ()
        self._retry_ms = now_ms
        effects: list[LeaderEffect] = []
        if state.isr != before.isr:
            effects.append(IsrChanged(state.partition_epoch, before.isr, state.isr))
        if state.partition_epoch > before.partition_epoch + 1:
            self._forget_outsiders(before)
        for node in state.offline:
            self._followers.pop(node, None)  # it may begin anew: what it held no longer counts
        known = set(self._followers)
        self._keep_followers(now_ms)
        effects += [self._solicit(node) for node in self._followers if node not in known]
        return [*effects, *self._advance(), *self._propose(now_ms)]

    def on_outcome(
        self, proposal: ProposeIsr, error: SuiroError | None, now_ms: int
    ) -> list[LeaderEffect]:
        """What is known of a proposal. If it was accepted the metadata will say so. If it was
        refused it never was. With any other error it may be decided on later still, so its members
        count until the partition epoch moves on.
        """
        if proposal is not self._pending or error is None:
            return []
        self._pending = None
        self._retry_ms = now_ms + PROPOSAL_RETRY_MS
        if not isinstance(error, _REFUSALS):
            self._uncertain = tuple(sorted({*self._uncertain, *proposal.nodes}))
        return self._advance()

    def tick(self, now_ms: int) -> list[LeaderEffect]:
        """Time has passed: who lags, who may come back, who has not heard the news."""
        pause_ms = now_ms - self._ticked_ms
        self._ticked_ms = now_ms
        for progress in self._followers.values():
            if pause_ms > PAUSE_MS:
                progress.forgive(pause_ms, now_ms)
            progress.owe_news(self.high_watermark, self._log.log_start)
        return [*self._propose(now_ms), *self._ready()]

    # -- what follows -----------------------------------------------------------------------------

    def _advance(self) -> list[LeaderEffect]:
        """The high watermark is what the whole maximal ISR holds, once all of it has said so."""
        held = self._held_end
        for node in self.maximal_isr:
            if node == self._node or held is None:
                continue
            follower = self._followers[node].held
            held = None if follower is None else min(held, follower)
        if held is None or held <= self.high_watermark:
            return []
        self.high_watermark = held
        return [HighWatermark(held)]

    def _propose(self, now_ms: int) -> list[LeaderEffect]:
        """The ISR as it should be, if it is not that and nothing else is being asked."""
        if self._pending is not None or now_ms < self._retry_ms:
            return []
        wanted = [node for node in self.state.replicas if self._belongs(node, now_ms)]
        if set(wanted) == set(self.state.isr):
            return []
        members = tuple(ProposedMember(node, self._broker_epoch(node)) for node in wanted)
        self._pending = ProposeIsr(self.state.leader_epoch, self.state.partition_epoch, members)
        return [self._pending]

    def _belongs(self, node: NodeId, now_ms: int) -> bool:
        if node == self._node:
            return True
        progress = self._followers[node]
        if node in self.state.isr:
            return progress.lag_ms(self._log.log_end, now_ms) <= self.lag_time_max_ms
        return self._may_join(node, progress)

    def _may_join(self, node: NodeId, progress: Progress) -> bool:
        """A follower joins once it holds everything that may be committed: up to the high watermark
        and, as a new leader's may be too low, up to where the epoch began. And only the incarnation
        that the metadata know: any other may have lost what it said it held.
        """
        known = self._nodes.get(node)
        return (
            progress.matches
            and progress.held is not None
            and progress.held >= max(self.high_watermark, self.epoch_start)
            and known is not None
            and known.available
            and known.broker_epoch == progress.broker_epoch
        )

    def _broker_epoch(self, node: NodeId) -> BrokerEpoch:
        """The incarnation that was seen; of a member not heard from yet, the one in the metadata.
        That is safe: had it restarted, the controller would have moved the partition epoch.
        """
        if node in self._followers and self._followers[node].broker_epoch != NO_BROKER_EPOCH:
            return self._followers[node].broker_epoch
        known = self._nodes.get(node)
        return NO_BROKER_EPOCH if known is None else known.broker_epoch

    def _ready(self, *nodes: NodeId) -> list[LeaderEffect]:
        """Those of the followers for whom there is something to send."""
        return [
            Ready(node, self._followers[node].stream)
            for node in nodes or self._followers
            if self._followers[node].next_push(self._log) is not None
        ]

    def _keep_followers(self, now_ms: int) -> None:
        """One progress per other replica: one that left and came back has to announce itself, and
        to know that it came back. Whoever is in the ISR already has never left.
        """
        state = self.state
        self._followers = {
            node: self._followers.get(node)
            or Progress(now_ms, NEVER if node in state.isr else state.partition_epoch)
            for node in state.replicas
            if node != self._node
        }

    def _forget_outsiders(self, before: PartitionState) -> None:
        """States were missed. In between, a replica outside the ISR may have been removed, have
        deleted its log, and been added again: what it said no longer counts.
        """
        for node in [*self._followers]:
            if node not in self.state.isr or node not in before.isr:
                del self._followers[node]

    def _solicit(self, node: NodeId) -> LeaderEffect:
        """A replica that begins anew here may itself have missed that it ever ended: ask for its
        position. One that does not follow yet will not answer, and announce itself when it does.
        """
        again = UnknownLeaderEpoch(f"{self.partition}: announce yourself again")
        return Refuse(node, again, NO_STREAM)

    def _refusal(self, node: NodeId, position: Position) -> SuiroError | None:
        epoch = self.state.leader_epoch
        if position.leader_epoch < epoch:
            return FencedLeaderEpoch(f"{self.partition}: leader epoch {epoch} has begun")
        if position.leader_epoch > epoch:
            return UnknownLeaderEpoch(f"{self.partition}: leader epoch is {epoch} here")
        if node not in self._followers:
            return UnknownLeaderEpoch(f"{self.partition}: node {node} holds no replica here yet")
        known, since = position.partition_epoch, self._followers[node].since
        if known is not None and known < since:
            return FencedLeaderEpoch(
                f"{self.partition}: node {node} came in partition epoch {since} and knows {known}"
            )
        return None
