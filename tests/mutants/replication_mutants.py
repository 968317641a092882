"""Planted bugs of partition replication: the bugs of others in RELIABILITY.md, rows 1 to 10.

Where two checks guard the same promise a mutant takes both away: each alone would be invisible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cluster.broker import replication_epochs, replication_role
from cluster.broker.follower import Follower
from cluster.broker.leader import Leader
from cluster.broker.partition import Partition
from cluster.broker.replication_progress import Progress
from cluster.controller_quorum import metadata_isr, metadata_nodes
from cluster.host.lease import Lease
from cluster.log import producers
from tests.mutants.registry import Edit, Mutant

if TYPE_CHECKING:
    from collections.abc import Callable


def _one(name: str, breaks: str, function: Callable[..., Any], before: str, after: str) -> Mutant:
    return Mutant(name, breaks, (Edit(function, before, after),))


REPLICATION_MUTANTS: tuple[Mutant, ...] = (
    _one(
        "row 1: a proposed ISR counts before the controller accepts it",
        "P12",
        Leader._advance,
        "for node in self.maximal_isr:",
        "for node in self._pending.nodes if self._pending else self.state.isr:",
    ),
    _one(
        "row 1: a leader whose session is over keeps serving",
        "M9",
        Lease.holds,
        "return now_ms < self.until_ms",
        "return True",
    ),
    _one(
        "row 1: acks=all is answered although the ISR has shrunk since",
        "P1",
        Leader.is_committed,
        "self.check_acks_all(min_isr)",
        "pass",
    ),
    _one(
        "row 2: a new follower cuts to its own high watermark",
        "P14",
        Follower.announce,
        "log = self._log\n",
        "log = self._log\n"
        "    end = max(self.high_watermark, log.log_start)\n"
        "    if not self.matches and end < log.log_end:\n"
        "        from cluster.broker.replication_effects import TruncateReason, TruncateTo\n"
        "        return [TruncateTo(log.log_end, end, TruncateReason.DIVERGED)]\n",
    ),
    _one(
        "row 3: logs are compared by one epoch's end alone",
        "P11",
        replication_epochs.divergence,
        "if leader_epoch == follower.last_epoch and follower.log_end <= end:\n"
        "        return _before_its_time(leader, follower)",
        "if follower.log_end <= end:\n        return None",
    ),
    _one(
        "row 3: a follower does not look where its own log left the epoch",
        "L1",
        replication_epochs.truncation_point,
        "return min(end, diverging.end, follower.log_end)",
        "return min(diverging.end, follower.log_end)",
    ),
    _one(
        "row 3: a diverging log is taken for a matching one",
        "P11",
        Leader.on_position,
        "divergence(self._log, position)",
        "None",
    ),
    _one(
        "row 4: acks of another epoch or stream count",
        "P9",
        Leader.on_ack,
        "or leader_epoch != self.state.leader_epoch\n"
        "        or stream != progress.stream\n"
        "        or not progress.matches\n",
        "",
    ),
    _one(
        "row 4: a follower heeds a leader of another epoch",
        "P11",
        Follower.on_part,
        "if part.leader_epoch != self.leader_epoch:",
        "if False:",
    ),
    _one(
        "row 4: an old divergence cuts a log that matches",
        "P14",
        Follower.on_part,
        "return [] if self.matches else self._cut(part.diverging)",
        "return self._cut(part.diverging)",
    ),
    _one(
        "row 5: a follower joins the ISR before the start of the epoch",
        "P12",
        Leader._may_join,
        "max(self.high_watermark, self.epoch_start)",
        "self.high_watermark",
    ),
    _one(
        "row 6: an unclean restart leaves a replica in the ISR",
        "P13",
        metadata_nodes._restarted,
        "new = without(image, state, node_id)",
        "new = without(image, state, node_id) if state.leader == node_id else state",
    ),
    _one(
        "row 6: the leader counts its own copy before it is synced",
        "P1",
        Leader._advance,
        "held = self._held_end",
        "held = self._log.log_end",
    ),
    _one(
        "row 6: a follower's position counts as synced",
        "P1",
        Progress.on_position,
        "self.next = position.log_end",
        "self.next = position.log_end\n    if self.matches:\n        self.held = position.log_end",
    ),
    _one(
        "row 6: what was cut still counts as synced",
        "P1",
        Follower.on_truncated,
        "kept = min(self._held_end, self._log.log_end)",
        "kept = self._held_end",
    ),
    Mutant(
        "row 7: the leader vouches for an incarnation that it has not seen",
        "P13",
        (
            Edit(Leader._may_join, "and known.broker_epoch == progress.broker_epoch", "and True"),
            Edit(
                Leader._broker_epoch,
                "if node in self._followers and self._followers[node].broker_epoch"
                " != NO_BROKER_EPOCH:",
                "if False:",
            ),
        ),
    ),
    _one(
        "row 7: the controller does not ask which incarnation",
        "P13",
        metadata_isr._check_member,
        "if node is None or node.broker_epoch != member.broker_epoch:",
        "if node is None:",
    ),
    _one(
        "row 7: a proposal is not compared with the partition epoch",
        "M8",
        metadata_isr._checked,
        "if proposal.partition_epoch != state.partition_epoch:",
        "if False:",
    ),
    _one(
        "row 7: what an incarnation held counts for the next one",
        "P12",
        Progress.on_position,
        "self.held = None",
        "pass",
    ),
    _one(
        "row 7: a role is taken from an image older than the registration",
        "P14",
        replication_role.is_known,
        "return known is not None and known.broker_epoch == broker_epoch",
        "return known is not None",
    ),
    _one(
        "row 7: a proposal without an answer is taken for refused",
        "P12",
        Leader.on_outcome,
        "if not isinstance(error, _REFUSALS):",
        "if False:",
    ),
    _one(
        "row 7: a replica that was removed and added again keeps its word",
        "P12",
        Leader.on_state,
        "if state.partition_epoch > before.partition_epoch + 1:",
        "if False:",
    ),
    _one(
        "row 7: a replica that does not know yet that it was removed is believed",
        "P12",
        Leader._refusal,
        "if known is not None and known < since:",
        "if False:",
    ),
    _one(
        "row 8: a new leader tells the high watermark it has heard of",
        "P10",
        Leader.check_high_watermark,
        "if not self.high_watermark_known:",
        "if False:",
    ),
    _one(
        "row 8: the high watermark goes back",
        "P10",
        Leader._advance,
        "if held is None or held <= self.high_watermark:",
        "if held is None or held == self.high_watermark:",
    ),
    _one(
        "row 9: the high watermark is what the committed ISR holds",
        "P12",
        Leader._advance,
        "for node in self.maximal_isr:",
        "for node in self.state.isr:",
    ),
    _one(
        "row 9: members who have said nothing yet are not waited for",
        "P9",
        Leader._advance,
        "held = None if follower is None else min(held, follower)",
        "held = held if follower is None else min(held, follower)",
    ),
    _one(
        "row 9: a follower takes over a high watermark beyond its log",
        "P9",
        Follower._learn,
        "min(self._leader_high_watermark, self._log.log_end)",
        "self._leader_high_watermark",
    ),
    _one(
        "row 9: an append is answered for in a later epoch of the same leader",
        "P1",
        Partition.wait_committed,
        "if leader.state.leader_epoch != leader_epoch:",
        "if False:",
    ),
    _one(
        "row 10: a retry is not told from a new batch",
        "P3",
        producers.check_batch,
        "for sent in state.sent:",
        "for sent in ():",
    ),
    _one(
        "row 10: a gap in the sequence is accepted, and its retry appended again",
        "P3",
        producers.check_batch,
        "if header.base_sequence != expected:",
        "if header.base_sequence < expected:",
    ),
    _one(
        "row 10: a producer that nobody knows may begin anywhere",
        "P4",
        producers.check_batch,
        "if header.base_sequence != 0:",
        "if False:",
    ),
    _one(
        "row 27: a follower serves readers before it has heard the leader",
        "P9",
        Follower.check_high_watermark,
        "if not self.matches:",
        "if False:",
    ),
    _one(
        "a follower appends behind a gap",
        "P11",
        Follower.on_part,
        "if part.base_offset != self._log.log_end:",
        "if part.base_offset < self._log.log_end:",
    ),
    _one(
        "what begins anew is taken for not held until the next append",
        "L1",
        Follower.on_truncated,
        "self._held_end = max(kept, self._log.log_start)",
        "self._held_end = kept",
    ),
    _one(
        "news that come with a part that came before are not heard",
        "L1",
        Follower._misfit,
        "return [*self._hear(part), *self._learn(), Ack(self._held_end)]",
        "return [Ack(self._held_end)]",
    ),
    _one(
        "a stream that was superseded takes over again",
        "L1",
        Leader.on_position,
        "if (broker_epoch, stream) < (progress.broker_epoch, progress.stream):",
        "if False:",
    ),
    _one(
        "every part that does not fit is announced",
        "L1",
        Follower._misfit,
        "if self._announced_ms is not None:",
        "if False:",
    ),
)

CANARY = Mutant(
    "canary: the same comparison, written otherwise",
    "nothing",
    (
        Edit(
            Leader._advance,
            "if held is None or held <= self.high_watermark:",
            "if held is None or not self.high_watermark < held:",
        ),
    ),
)
