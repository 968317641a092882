"""Planted bugs of consumer groups: rows 13, 26 and 28 of RELIABILITY.md, and what G1 to G6 forbid.

Where two checks guard the same promise a mutant takes both away: each alone would be invisible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suiro.membership import Membership

from cluster.groupcoord import codec, members, offsets, rebalance, reconcile
from cluster.groupcoord.group import Draft
from cluster.groupcoord.sessions import Sessions
from tests.mutants.registry import Edit, Mutant

if TYPE_CHECKING:
    from collections.abc import Callable


def _one(name: str, breaks: str, function: Callable[..., Any], before: str, after: str) -> Mutant:
    return Mutant(name, breaks, (Edit(function, before, after),))


GROUP_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "two owners: a partition is granted before its owner gave it up",
        "G1",
        (
            Edit(
                reconcile.step_all,
                "for partition in target if partition not in taken]",
                "for partition in target if taken.get(partition) != member_id]",
            ),
            Edit(
                reconcile.owners,
                'assert owned.partition not in found, f"{owned.partition} has two owners"',
                "pass",
            ),
        ),
    ),
    Mutant(
        "lost revoke: any word of a member gives up what it was told to",
        "G1",
        (
            Edit(reconcile._is_given_up, "and carried_out >= owned.revoked_epoch", ""),
            Edit(reconcile._is_given_up, "and owned.partition not in held", ""),
        ),
    ),
    Mutant(
        "a member acknowledges before it has given up",
        "G1",
        (
            Edit(Membership._go_on, "if not self._giving and self", "if self"),
            Edit(reconcile._is_given_up, "and owned.partition not in held", ""),
        ),
    ),
    _one(
        "a member heeds a late assignment",
        "G1",
        Membership.on_notice,
        "and notice.member_epoch > self.told_epoch",
        "",
    ),
    _one(
        "a second life under the same id goes on as the first",
        "G3",
        Membership.on_notice,
        "if self.joined_epoch not in {0, notice.joined_epoch}:",
        "if False:",
    ),
    _one(
        "row 28: a replay forgets what is being given up",
        "G1",
        codec._owned_value,
        "revoked_epochs=[o.revoked_epoch for o in owned]",
        "revoked_epochs=[0 for o in owned]",
    ),
    _one(
        "row 28: a replay forgets the epochs given out",
        "G3",
        codec._group_value,
        "given_epoch=state.given_epoch,",
        "",
    ),
    _one(
        "member epochs are given out twice",
        "G3",
        Draft.next_epoch,
        "self.state = replace(self.state, given_epoch=self.state.given_epoch + 1)",
        "return self.state.given_epoch + 1",
    ),
    _one(
        "stale commit: the grant is not compared",
        "G3",
        offsets._not_owned,
        "if member_epoch < granted:",
        "if False:",
    ),
    _one(
        "stale commit: a former owner may commit",
        "G3",
        offsets._not_owned,
        "if granted is None:\n        return",
        "if granted is None:\n        return None if member_epoch else",
    ),
    _one(
        "row 13: a late commit goes back",
        "G2",
        offsets._goes_back,
        "return new.offset < before.offset",
        "return False",
    ),
    _one(
        "row 26: the leader epoch is not stored",
        "G6",
        codec._offset_value,
        "leader_epoch=offset.leader_epoch,",
        "leader_epoch=-1,",
    ),
    _one(
        "commits from outside while the group has members",
        "G3",
        offsets._committer,
        "if group.members:",
        "if False:",
    ),
    _one(
        "static member double: the former process stays a member",
        "G1",
        members._join,
        "former = draft.group.member_of(message.instance_id)",
        "former = None",
    ),
    Mutant(
        "a settled transaction is applied again",
        "G2",
        (
            Edit(offsets.settle, "return Decision((), None)", "pass"),
            Edit(offsets.settle, "if known.outcome is Outcome.PENDING:", "if True:"),
            Edit(
                offsets.settle,
                "outcome, wall_ms)",
                "outcome, wall_ms, known.offsets if known else ())",
            ),
            Edit(
                offsets._settled,
                "if not _goes_back(group.offsets.get(offset.partition), offset)",
                "if True",
            ),
        ),
    ),
    _one(
        "an older epoch of the producer settles",
        "G2",
        offsets.settle,
        "if known.producer_epoch > end.producer_epoch:",
        "if False:",
    ),
    _one(
        "offsets of an aborted transaction count",
        "G2",
        offsets._settled,
        "if not end.commit:",
        "if False:",
    ),
    _one(
        "a late commit opens a transaction that has ended",
        "G2",
        offsets._check_producer,
        "if known.outcome is not Outcome.PENDING:",
        "if False:",
    ),
    _one(
        "the end of a transaction without offsets is not remembered",
        "G2",
        offsets.settle,
        "offsets: tuple[OffsetState, ...] = ()",
        "offsets: tuple[OffsetState, ...] = ()\n    if known is None:\n"
        "        return Decision((), None)",
    ),
    _one(
        "an open transaction is not waited for",
        "G2",
        offsets.fetch,
        "if require_stable else frozenset()",
        "if False else frozenset()",
    ),
    _one(
        "a member waits for a silent coordinator until its session is over",
        "G4",
        Membership.is_kept_waiting,
        "self._asked_ms is not None and",
        "False and",
    ),
    _one(
        "a member has no patience with the next coordinator",
        "G4",
        Membership.on_connected,
        "self._asked_ms = None",
        "pass",
    ),
    _one(
        "expiry drops a live member: what it says does not count",
        "G4",
        Sessions.on_heard,
        "heard.at_ms = max(heard.at_ms, now_ms)",
        "pass",
    ),
    _one(
        "expiry drops a live member: a new coordinator holds silence against all",
        "G4",
        Sessions._session,
        "_Heard(now_ms)",
        "_Heard(-1e9)",
    ),
    _one(
        "nobody is ever put out for keeping what it has to give up",
        "G4",
        Sessions._arm_giving_up,
        "mark=min((o.revoked_epoch for o in member.owned if o.is_revoked), default=None),",
        "mark=None,",
    ),
    _one(
        "a late subscription replaces a newer one",
        "G4",
        members._resubscribe,
        "if message.subscription_version <= member.subscription_version:",
        "if not message.subscription_version:",
    ),
    _one(
        "a new coordinator assigns before it knows the topics",
        "G4",
        rebalance.is_due,
        "if not group.members or not topics.are_known:",
        "if not group.members:",
    ),
    _one(
        "new partitions are nobody's",
        "G4",
        rebalance.is_due,
        "return _covered(group) != topics.counts(group.members.values())",
        "return False",
    ),
    _one(
        "what a member that is gone was giving up is nobody's",
        "G4",
        members._after_removal,
        "step_all(draft)",
        "pass",
    ),
)

CANARY = _one(
    "canary: no bug at all",
    "-",
    reconcile.step,
    "wanted = frozenset(target)",
    "wanted = frozenset(list(target))",
)
