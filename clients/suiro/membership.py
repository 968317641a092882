"""What a member of a consumer group says next, and what it does about what it hears.

Facts and the time in, intentions out; the consumer carries them out and reports back. What always
holds:
- A partition is held from its `Assign` until the consumer reports that it gave it up, or `Lost`.
- An assignment counts only while the session is known to be alive. It is acknowledged only when
  everything that it takes away is given up; until then the member keeps speaking under its former
  epoch, and may commit what it is giving up.
- A lost connection changes nothing: the member comes back with its id and epoch. Everything is lost
  only when the coordinator says that it is out, or when the session timeout has passed since it
  *sent* the last message that was answered; then it joins anew under another id.

Heartbeats do not wait for the application: a slow handler keeps its partitions, unless
`processing_timeout_ms` says how long it may take; then the member leaves, and joins again once the
application asks for records.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from suiro._proto import groupcoord_pb2 as pb
from suiro._proto.common_pb2 import TopicPartition as WirePartition
from suiro.model.error_base import ErrorCode
from suiro.model.ids import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

SENT_MAX: Final = 64
"""Messages without an answer whose time is remembered; older ones can only shorten the lease."""

PATIENCES: Final = 4
"""So often within a session timeout may a coordinator that does not answer be looked for."""

_OUT: Final = {ErrorCode.UNKNOWN_MEMBER, ErrorCode.STALE_MEMBER_EPOCH}
_FINAL: Final = {
    ErrorCode.FENCED_INSTANCE,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.UNSUPPORTED_ASSIGNOR,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.UNAUTHENTICATED,
    ErrorCode.UNAUTHORIZED,
    ErrorCode.CLUSTER_ID_MISMATCH,
}

Partitions = tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Say:
    """Send this on the session stream."""

    message: pb.MemberMessage


@dataclass(frozen=True, slots=True)
class Connect:
    """Find the coordinator and open a session stream; then `on_connected`."""


@dataclass(frozen=True, slots=True)
class Assign:
    """These are yours from now on: begin at their committed offsets."""

    partitions: Partitions


@dataclass(frozen=True, slots=True)
class Revoke:
    """Stop consuming these, commit what was processed, then `on_given_up`."""

    partitions: Partitions


@dataclass(frozen=True, slots=True)
class Lost:
    """These were yours; somebody else may have them already, so a commit would be refused."""

    partitions: Partitions


@dataclass(frozen=True, slots=True)
class Compute:
    """Run the user's own assignor on this; then `on_computed`."""

    request: pb.ComputeAssignment


@dataclass(frozen=True, slots=True)
class Fail:
    """It cannot go on: the application has to know."""

    code: ErrorCode
    message: str


Intention = Say | Connect | Assign | Revoke | Lost | Compute | Fail


@dataclass(slots=True, kw_only=True)
class MemberConfig:
    """What the application wants."""

    group: str
    topics: tuple[str, ...] = ()
    pattern: str = ""
    assignors: tuple[str, ...] = ()
    instance_id: str = ""
    rack: str = ""
    session_timeout_ms: int = 10_000
    rebalance_timeout_ms: int = 60_000
    heartbeat_interval_ms: int = 3_000
    processing_timeout_ms: int | None = None


@dataclass(slots=True)
class Membership:
    """One consumer's life in its group; `make_id` gives an id that nobody else has."""

    config: MemberConfig
    make_id: Callable[[], str]
    member_id: str = ""
    told_epoch: int = 0
    """The newest assignment heard of: what commits are made under."""
    carried_out: int = 0
    """The newest assignment that is carried out: what heartbeats say."""
    joined_epoch: int = 0
    """Names this membership; a notice with another one is of a second life under the same id."""
    held: set[TopicPartition] = field(default_factory=set)
    has_ended: bool = False
    is_parked: bool = False
    """Its handler was stuck: it has left until the application polls again."""
    _told: frozenset[TopicPartition] = frozenset()
    _giving: set[TopicPartition] = field(default_factory=set)
    _is_connected: bool = False
    _version: int = 1
    _number: int = 0
    _sent_ms: dict[int, float] = field(default_factory=dict)
    _lease_ms: float | None = None
    _speak_ms: float = 0
    _asked_ms: float | None = None
    """When the first message that is not answered yet was said on this stream."""
    _progress_ms: float = 0

    def start(self, now_ms: float) -> list[Intention]:
        self.member_id = self.make_id()
        self._progress_ms = now_ms
        return [Connect()]

    # -- the connection ---------------------------------------------------------------------------

    def on_connected(self, now_ms: float) -> list[Intention]:
        """A session stream is open: the first message says everything."""
        if self.has_ended or self.is_parked:
            return []
        self._is_connected = True
        self._asked_ms = None
        return [self._say(now_ms, everything=True)]

    def on_disconnected(self) -> list[Intention]:
        """The stream broke, or could not be opened: nothing is lost yet."""
        self._is_connected = False
        return [] if self.has_ended or self.is_parked else [Connect()]

    def on_notice(self, notice: pb.MemberNotice, now_ms: float) -> list[Intention]:
        if self.has_ended:
            return []
        if notice.HasField("error"):
            return self._on_error(notice.error.code, notice.error.message)
        if notice.member_id != self.member_id:
            return []  # to an earlier life of this member
        self._extend_lease(notice.answers)
        if self._lease_ms is None or now_ms >= self._lease_ms:
            return self.on_time(now_ms)  # what it says may be over already
        if self.joined_epoch not in {0, notice.joined_epoch}:
            self._is_connected = False
            return [*self._lose(), Connect()]
        self.joined_epoch = notice.joined_epoch
        intentions: list[Intention] = []
        if notice.has_assignment and notice.member_epoch > self.told_epoch:
            intentions += self._take(notice, now_ms)
        if notice.HasField("compute"):
            intentions.append(Compute(notice.compute))
        return intentions

    def _on_error(self, code: int, message: str) -> list[Intention]:
        self._is_connected = False
        known = ErrorCode(code) if code in set(ErrorCode) else ErrorCode.INTERNAL
        if known in _FINAL:
            self.has_ended = True
            return [*self._lose(), Fail(known, message)]
        if known in _OUT:
            return [*self._lose(), Connect()]
        return [Connect()]

    # -- assignments ------------------------------------------------------------------------------

    def _take(self, notice: pb.MemberNotice, now_ms: float) -> list[Intention]:
        self.told_epoch = notice.member_epoch
        self._told = frozenset(TopicPartition(p.topic, p.partition) for p in notice.assigned)
        give = self.held - self._told - self._giving
        self._giving |= give
        revoke: list[Intention] = [Revoke(tuple(sorted(give)))] if give else []
        return [*revoke, *self._go_on(now_ms)]

    def on_given_up(self, partitions: Iterable[TopicPartition], now_ms: float) -> list[Intention]:
        """The consumer has stopped and committed these."""
        done = self._giving & set(partitions)
        self._giving -= done
        self.held -= done
        return self._go_on(now_ms)

    def _go_on(self, now_ms: float) -> list[Intention]:
        """Take what is new, and acknowledge the assignment once nothing is left to give up."""
        intentions: list[Intention] = []
        new = self._told - self.held
        if new:
            self.held |= new
            self._progress_ms = now_ms
            intentions.append(Assign(tuple(sorted(new))))
        if not self._giving and self.carried_out != self.told_epoch:
            self.carried_out = self.told_epoch
            if self._is_connected:
                intentions.append(self._say(now_ms))
        return intentions

    def _lose(self) -> list[Intention]:
        """This life is over; the next one begins with a join under another id."""
        lost = tuple(sorted(self.held))
        self.held.clear()
        self._giving.clear()
        self._told = frozenset()
        self.told_epoch = self.carried_out = self.joined_epoch = 0
        self._lease_ms = None
        self._sent_ms.clear()
        self.member_id = self.make_id()
        return [Lost(lost)] if lost else []

    # -- the application --------------------------------------------------------------------------

    def subscribe(self, topics: tuple[str, ...], pattern: str, now_ms: float) -> list[Intention]:
        self.config.topics, self.config.pattern = topics, pattern
        self._version += 1
        return [self._say(now_ms, everything=True)] if self._is_connected else []

    def on_progress(self, now_ms: float) -> None:
        """The application has asked for more records: its handler is not stuck."""
        self._progress_ms = now_ms

    def come_back(self) -> list[Intention]:
        """The handler that was stuck is not any more: join again."""
        was_parked, self.is_parked = self.is_parked, False
        return [Connect()] if was_parked else []

    def on_computed(
        self, group_epoch: int, assignment: Mapping[str, Iterable[TopicPartition]], now_ms: float
    ) -> list[Intention]:
        views = [
            pb.MemberView(member_id=member_id, owned=_wire(assignment[member_id]))
            for member_id in sorted(assignment)
        ]
        computed = pb.ComputedAssignment(group_epoch=group_epoch, members=views)
        return [self._say(now_ms, computed=computed)] if self._is_connected else []

    def leave(self, reason: str, now_ms: float) -> list[Intention]:
        """For good. Whoever wants to commit first does so before this."""
        self.has_ended = True
        self.held.clear()
        self._giving.clear()
        return self._goodbye(reason, now_ms)

    def _goodbye(self, reason: str, now_ms: float) -> list[Intention]:
        if not self._is_connected:
            return []
        said = self._say(now_ms)
        said.message.leaving = True
        said.message.leave_reason = reason
        return [said]

    # -- time -------------------------------------------------------------------------------------

    def next_deadline_ms(self) -> float:
        """When `on_time` is wanted at the latest."""
        waits = [self._speak_ms] if self._is_connected else []
        if self._lease_ms is not None:
            waits.append(self._lease_ms)
        if self.config.processing_timeout_ms is not None and self.held:
            waits.append(self._progress_ms + self.config.processing_timeout_ms)
        return min(waits, default=float("inf"))

    def is_over(self, now_ms: float) -> bool:
        """Whether the session has run out, and `on_time` has not noticed yet."""
        return self._lease_ms is not None and now_ms >= self._lease_ms

    def on_time(self, now_ms: float) -> list[Intention]:
        """Heartbeat, give up a session that is over, let go of a handler that is stuck."""
        if self.has_ended:
            return []
        if self.is_over(now_ms):
            self._is_connected = False
            return [*self._lose(), Connect()]
        timeout_ms = self.config.processing_timeout_ms
        if timeout_ms is not None and self.held and now_ms >= self._progress_ms + timeout_ms:
            goodbye = self._goodbye("the handler made no progress", now_ms)
            self.is_parked = True
            self._is_connected = False
            return [*goodbye, *self._lose()]
        if self._is_connected and now_ms >= self._speak_ms:
            return [self._say(now_ms)]
        return []

    @property
    def patience_ms(self) -> float:
        return self.config.session_timeout_ms / PATIENCES

    def is_kept_waiting(self, now_ms: float) -> bool:
        """A coordinator that hangs or is cut off breaks no stream: whoever is not answered asks
        whether there is another one by now, early enough to keep what it has. One that is only
        slow is not left: it would take that for a member that is gone.
        """
        return self._asked_ms is not None and now_ms - self._asked_ms >= self.patience_ms

    def _extend_lease(self, answers: int) -> None:
        sent_ms = self._sent_ms.get(answers)
        if sent_ms is None:
            return
        self._sent_ms = {number: at for number, at in self._sent_ms.items() if number > answers}
        self._asked_ms = min(self._sent_ms.values(), default=None)
        ends_ms = sent_ms + self.config.session_timeout_ms
        self._lease_ms = ends_ms if self._lease_ms is None else max(self._lease_ms, ends_ms)

    def _say(
        self,
        now_ms: float,
        *,
        everything: bool = False,
        computed: pb.ComputedAssignment | None = None,
    ) -> Say:
        self._number += 1
        self._sent_ms[self._number] = now_ms
        self._asked_ms = now_ms if self._asked_ms is None else self._asked_ms
        if len(self._sent_ms) > SENT_MAX:
            del self._sent_ms[min(self._sent_ms)]
        self._speak_ms = now_ms + self.config.heartbeat_interval_ms
        message = pb.MemberMessage(
            group=self.config.group,
            member_id=self.member_id,
            member_epoch=self.carried_out,
            instance_id=self.config.instance_id,
            owned=_wire(self.held),
            number=self._number,
            computed=computed,
        )
        if everything or self.told_epoch == 0:
            self._add_subscription(message)
        return Say(message)

    def _add_subscription(self, message: pb.MemberMessage) -> None:
        message.topics.extend(self.config.topics)
        message.pattern = self.config.pattern
        message.assignors.extend(self.config.assignors)
        message.rack = self.config.rack
        message.session_timeout_ms = self.config.session_timeout_ms
        message.rebalance_timeout_ms = self.config.rebalance_timeout_ms
        message.subscription_version = self._version


def _wire(partitions: Iterable[TopicPartition]) -> list[WirePartition]:
    return [WirePartition(topic=p.topic, partition=p.partition) for p in sorted(partitions)]
