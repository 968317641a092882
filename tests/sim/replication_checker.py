"""What must hold of partition replication, whatever happens: P1 to P14 and M8 of RELIABILITY.md.

The checker sees the logs of all brokers and every decision of the controller; it knows nothing of
the cores. `truth` is what has been committed: the records below the highest high watermark that a
leader has reached. It only grows; an offset keeps its record forever.

There are two doors through which committed records may be lost, and both are marked in the
metadata: an unclean election, where the topic allows it; and the last replica of an ISR that lost
power, or its disk, before the others could be elected (docs/replication.md says what that promises
and what not). Behind a door the truth is what the new leader has. Nobody may have been served
by an older epoch after it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from suiro.model.ids import NO_LEADER
from suiro.model.records import Recovery

if TYPE_CHECKING:
    from suiro.model.ids import LeaderEpoch, NodeId, Offset
    from suiro.model.records import PartitionState

    from tests.sim.replication_broker import Broker
    from tests.sim.replication_log import Record


class Violation(AssertionError):
    """A promise was broken."""


class ReplicationChecker:
    """One partition. `brokers` are the real ones, dead or alive, with their disks."""

    def __init__(self, brokers: dict[NodeId, Broker], *, syncs_first: bool) -> None:
        self.brokers = brokers
        self.syncs_first = syncs_first
        self.truth: list[Record | None] = []
        """None where a door left a log that begins later: what others have there may be another
        record, which went through the door, and is theirs to cut.
        """
        self.acked: dict[int, Offset] = {}
        self.given_up: set[int] = set()
        """Values that went through one of the doors."""
        self.state: PartitionState | None = None
        self.counts: Counter[str] = Counter()
        self.doors = 0
        self.door_epoch = -1
        self._door_end = -1
        """What a survivor had not synced by then was promised by others: see `_check_isr`."""
        self._verified: dict[NodeId, int] = dict.fromkeys(brokers, 0)
        self._written: dict[tuple[int, int], tuple[int, int | None]] = {}
        self._advertised: dict[int, tuple[int, int]] = {}
        self._leaders: dict[int, NodeId] = {}

    # -- logs -------------------------------------------------------------------------------------

    def on_leader_append(self, node: NodeId, leader_epoch: LeaderEpoch) -> None:
        """M8: one leader writes an epoch, and each offset of it once."""
        broker = self.brokers[node]
        if self._leaders.setdefault(leader_epoch, node) != node:
            raise Violation(f"M8: {node} writes epoch {leader_epoch} of {self._leaders}")
        log = broker.log
        offset = log.log_end - 1
        if (leader_epoch, offset) in self._written:
            raise Violation(f"M8: {node} writes ({leader_epoch}, {offset}) a second time")
        before = log.at(offset - 1).leader_epoch if log.has(offset - 1) else None
        self._written[leader_epoch, offset] = (log.at(offset).value, before)

    def on_follower_append(self, node: NodeId, start: Offset, leader_start: Offset) -> None:
        """P11: what is appended is what the leader of that epoch wrote, behind the same record,
        unless the leader has deleted that one.
        """
        log = self.brokers[node].log
        for offset in range(start, log.log_end):
            record = log.at(offset)
            value, before = self._written[record.leader_epoch, offset]
            if record.value != value:
                raise Violation(f"P11: {node} has {record} at {offset}, written was {value}")
            is_there = log.has(offset - 1) and offset > leader_start and before is not None
            if is_there and log.at(offset - 1).leader_epoch != before:
                raise Violation(f"P11: {node} appended {offset} behind {log.at(offset - 1)}")

    def before_truncate(self, node: NodeId, end: int, leader: Broker) -> None:
        """P14: nothing committed is cut, and nothing that the leader has as well."""
        log = self.brokers[node].log
        held = self._verify(node)
        if any(record is not None for record in self.truth[end:held]):
            raise Violation(f"P14: {node} cuts to {end}, of {len(self.truth)} committed has {held}")
        common = int(log.log_start)
        while (
            log.has(common) and leader.log.has(common) and log.at(common) == leader.log.at(common)
        ):
            common += 1
        if log.log_start >= leader.log.log_start and end < common:
            raise Violation(f"P14: {node} cuts to {end}, equal up to {common}")
        self._verified[node] = min(self._verified[node], end)
        self.counts["truncations"] += 1

    def on_lost(self, node: NodeId) -> None:
        """A log has lost a tail, or all of it, or begins elsewhere."""
        self._verified[node] = 0

    def _verify(self, node: NodeId) -> int:
        """How much of the truth a log has from its start on; what was seen equal stays so."""
        log, truth = self.brokers[node].log, self.truth
        offset = max(self._verified[node], log.log_start)
        end = min(log.log_end, len(truth))
        while offset < end and truth[offset] in {None, log.at(offset)}:
            offset += 1
        self._verified[node] = offset
        return offset

    # -- commitment -------------------------------------------------------------------------------

    def on_high_watermark(self, node: NodeId, leader_epoch: int, end: int) -> None:
        """P9, P12: a leader says that everything below `end` is committed."""
        if leader_epoch < self.door_epoch:
            return  # deposed by a door: it may believe what it likes, if it serves nobody
        log = self.brokers[node].log
        if end > log.log_end:
            raise Violation(f"P9: {node} commits {end} of {log.log_end}")
        if self._verify(node) < min(end, len(self.truth)):
            raise Violation(f"P2: {node} commits otherwise at {self._verified[node]}")
        for offset in range(len(self.truth), end):
            self.truth.append(log.at(offset))
        self._check_isr("commit")

    def on_follower_high_watermark(self, node: NodeId, leader_epoch: int, end: int) -> None:
        """A follower says so because its leader did."""
        if leader_epoch >= self.door_epoch and self._verify(node) < end:
            raise Violation(f"P9: {node} heard of {end}, of which it has {self._verified[node]}")

    def _check_isr(self, when: str) -> None:
        """P12: whoever may be elected holds all that is committed, as firmly as was promised."""
        state, committed = self.state, len(self.truth)
        if state is None:
            return
        for node in state.isr:
            broker = self.brokers[node]
            if broker.has_lost:
                continue  # it has not come back yet; when it does the controller has to see to it
            if self._verify(node) < committed:
                raise Violation(
                    f"P12 at {when}: {node} is in the ISR {state.isr} of epoch "
                    f"{state.leader_epoch} with {self._verified[node]} of {committed} committed"
                )
            if self.syncs_first and broker.log.synced_end < committed != self._door_end:
                raise Violation(f"P1 at {when}: {node} has synced {broker.log.synced_end}")

    def on_state(self, state: PartitionState) -> None:
        """The controller has decided something about the partition."""
        before, self.state = self.state, state
        leads_anew = before is not None and state.leader_epoch > before.leader_epoch
        if state.leader != NO_LEADER and leads_anew:
            self.counts["elections"] += 1
        if before is not None and len(state.isr) > len(before.isr):
            self.counts["isr grew"] += 1
        if before is not None and len(state.isr) < len(before.isr):
            self.counts["isr shrank"] += 1
        if state.recovery is Recovery.UNCLEAN and leads_anew:
            self._open_door(state, "unclean elections")
        self._check_isr("decision")

    def on_registered(self, node: NodeId) -> None:
        """P13: the controller has let a new incarnation in, and has done about it what it does. If
        it has lost a tail it is in no ISR any more, but where it was the last one.
        """
        broker, state = self.brokers[node], self.state
        broker.lost_in_last_life, broker.has_lost = broker.has_lost, False
        if (
            broker.lost_in_last_life
            and state is not None
            and state.isr == (node,)
            and state.recovery is not Recovery.NONE
        ):
            self._open_door(state, "last standing lost its tail")
        self._check_isr("registration")

    def _open_door(self, state: PartitionState, kind: str) -> None:
        (survivor,) = state.isr
        kept = self._verify(survivor)
        self.counts[kind] += 1
        self.door_epoch = state.leader_epoch
        self._door_end = kept
        start = min(self.brokers[survivor].log.log_start, len(self.truth))
        self.truth[:start] = [None] * start
        if kept == len(self.truth):
            return
        self.counts[f"{kind}: records given up"] += len(self.truth) - kept
        lost = self.truth[kept:]
        del self.truth[kept:]
        self.truth += [None] * (kept - len(self.truth))
        for record in lost:
            if record is not None:
                self.given_up.add(record.value)
                self.acked.pop(record.value, None)
        for node in self._verified:
            self._verified[node] = min(self._verified[node], kept)
        self.doors += 1
        self._advertised.clear()

    # -- what clients see -------------------------------------------------------------------------

    def on_ack(self, node: NodeId, leader_epoch: int, value: int, offset: Offset) -> None:
        """P1, P2: acks=all was answered."""
        self._check_serving(node, leader_epoch, "acknowledges")
        record = self.truth[offset] if offset < len(self.truth) else None
        if record is None or record.value != value:
            raise Violation(f"P1: {node} acknowledges {value} at {offset}, which is not committed")
        if self.acked.setdefault(value, offset) != offset:
            raise Violation(f"P3: {value} is at {offset} and at {self.acked[value]}")
        self.counts["acks"] += 1

    def check_copies(self, value: int, offset: int, min_isr: int) -> None:
        """acks=all promises so many copies; a copy that a power failure took counts as given."""
        copies = sum(
            broker.has_lost
            or broker.lost_in_last_life
            or (broker.log.has(offset) and broker.log.at(offset).value == value)
            or broker.log.log_start > offset
            for broker in self.brokers.values()
        )
        if copies < min_isr:
            raise Violation(f"P1: {value} is acknowledged with {copies} of {min_isr} copies")

    def on_read(self, offset: int, record: Record) -> None:
        """P2, P9: a consumer was given a record; it must be the one, forever."""
        if offset >= len(self.truth) or self.truth[offset] != record:
            raise Violation(f"P9: a consumer read {record} at {offset}, which is not committed")
        self.counts["reads"] += 1

    def on_advertised(self, node: NodeId, leader_epoch: int, high_watermark: int) -> None:
        """P10: a later epoch never tells of less than an earlier one told, whoever asks when."""
        self._check_serving(node, leader_epoch, "advertises")
        for epoch, (lowest, highest) in self._advertised.items():
            if (epoch < leader_epoch and highest > high_watermark) or (
                epoch > leader_epoch and lowest < high_watermark
            ):
                raise Violation(
                    f"P10: {node} in epoch {leader_epoch} tells {high_watermark}, "
                    f"epoch {epoch} told {lowest} to {highest}"
                )
        lowest, highest = self._advertised.get(leader_epoch, (high_watermark, high_watermark))
        if high_watermark < highest:
            raise Violation(f"P10: {node} goes back from {highest} to {high_watermark}")
        self._advertised[leader_epoch] = (lowest, high_watermark)
        self.counts["advertised"] += 1

    def _check_serving(self, node: NodeId, leader_epoch: int, what: str) -> None:
        if leader_epoch < self.door_epoch:
            raise Violation(f"{node} {what} in epoch {leader_epoch}, given up since")
        if self.brokers[node].is_fenced_by_controller():
            raise Violation(f"M9: {node} {what} in epoch {leader_epoch} although it is fenced")

    # -- the end ----------------------------------------------------------------------------------

    def check_end(self, leader: NodeId) -> None:
        """P1, P3, P7, P11: after healing, everything acknowledged is there, once, everywhere."""
        log = self.brokers[leader].log
        for value, offset in sorted(self.acked.items()):
            if offset >= log.log_start and (not log.has(offset) or log.at(offset).value != value):
                raise Violation(f"P1: {value} was acknowledged at {offset} and is not there")
        values = [record.value for record in self.truth if record is not None]
        if len(set(values)) != len(values):
            raise Violation("P3: a value is committed twice")
        assert self.state is not None
        for node in self.state.replicas:
            other = self.brokers[node].log
            start = max(log.log_start, other.log_start)
            if other.log_end != log.log_end or any(
                other.at(offset) != log.at(offset) for offset in range(start, log.log_end)
            ):
                raise Violation(f"P11: {node} and {leader} differ at the end")
