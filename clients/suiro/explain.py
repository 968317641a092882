"""Why something does not move: a partition, a group, a transaction. Pure; `suiro why` prints it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suiro.cluster_view import ClusterView
    from suiro.group_info import GroupInfo, GroupMemberInfo, PartitionLag
    from suiro.model.ids import NodeId, TopicPartition
    from suiro.txn_info import OpenTransaction, TxnInfo

SILENT_MS: Final = 10_000
"""A member that was not heard of for so long has a problem of its own."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """What was found about one subject."""

    subject: str
    stuck: bool
    state: str
    causes: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()


def explain_partition(
    view: ClusterView, name: TopicPartition, held: Sequence[OpenTransaction] = ()
) -> Explanation:
    """Whether it can be written with acks=all and read to its end; else who is missing."""
    info = view.topics[name.topic].partitions[name.partition]
    least = view.min_insync.get(name.topic, 1)
    subject = str(name)
    away = [replica for replica in info.replicas if replica not in view.alive]
    if info.leader is None:
        causes = [f"nobody leads; only in-sync replicas may, and those were {_ids(info.isr)}"]
        causes += [_absent(view, replica) for replica in info.isr]
        advice = (
            f"start node {_ids(info.isr)}: it takes over by itself",
            "if they are lost for good: `suiro leader elect --topic "
            f"{name.topic} --partition {name.partition} --unclean` gives up what they alone had",
        )
        return Explanation(subject, True, "offline", tuple(causes), advice)
    if len(info.isr) < least:
        lagging = [r for r in info.replicas if r not in info.isr and r not in away]
        causes = [
            f"acks=all is refused: in sync {_ids(info.isr)}, min.insync.replicas is {least}",
            *(_absent(view, replica) for replica in away),
            *(f"node {r} is up and has not caught up yet" for r in lagging),
        ]
        fixes = [f"start node {_ids(away)}"] if away else []
        fixes.append("it works again by itself when a follower has caught up")
        return Explanation(subject, True, "unwritable", tuple(causes), tuple(fixes))
    if held:
        return _held_back(subject, held)
    state = f"writable; led by node {info.leader}, in sync {_ids(info.isr)}"
    return Explanation(subject, False, state)


def explain_group(
    info: GroupInfo,
    lags: Sequence[PartitionLag],
    now_ms: int,
    blocked: Sequence[Explanation] = (),
) -> Explanation:
    """Whether it goes on; else who holds it up. `blocked` are its partitions that are stuck."""
    subject = f"group {info.group}"
    behind = sum(lag.records or 0 for lag in lags)
    if blocked:
        causes = tuple(f"{b.subject} is {b.state}: {b.causes[0]}" for b in blocked)
        return Explanation(subject, True, "blocked", causes, blocked[0].advice)
    giving = [member for member in info.members if member.revoking]
    if giving:
        causes = tuple(_gives_up(member, now_ms) for member in giving)
        advice = ("a member gives up what it was told to when it polls: look at its handler",)
        return Explanation(subject, True, "rebalancing", causes, advice)
    silent = [m for m in info.members if now_ms - m.last_heard_ms > SILENT_MS]
    if silent:
        causes = tuple(f"{_who(m)} was last heard {_ago(now_ms, m)} ago" for m in silent)
        advice = ("it is put out when its session ends, and others take over",)
        return Explanation(subject, True, "silent member", causes, advice)
    if not info.members and behind:
        causes = (f"{behind} records wait, and the group has no member",)
        return Explanation(subject, True, "nobody reads", causes, ("start a consumer",))
    state = f"{info.state}; {len(info.members)} members, {behind} records behind"
    return Explanation(subject, False, state)


def explain_transaction(info: TxnInfo, now_ms: int, blocked: Sequence[Explanation]) -> Explanation:
    """Whether one is open, since when, what it holds back, and what ends it."""
    listing = info.listing
    subject = f"transaction {listing.transactional_id}"
    where = ", ".join(map(str, info.partitions)) or "no partition yet"
    if listing.state == "ongoing":
        age_s = (now_ms - listing.started_at_ms) / 1000
        left_s = info.timeout_ms / 1000 - age_s
        causes = (
            f"open for {age_s:.0f} s by producer {listing.producer_id} epoch "
            f"{listing.producer_epoch} of {listing.client or 'an unknown client'}",
            f"readers of committed records wait in {where}",
        )
        advice = (
            f"it is aborted by itself in {max(left_s, 0):.0f} s",
            f"`suiro txn abort {listing.transactional_id}` aborts it now",
        )
        return Explanation(subject, True, "open", causes, advice)
    if listing.state.startswith("prepare_"):
        verb = listing.state.removeprefix("prepare_")
        reasons = [f"its {verb} is decided; markers are being written in {where}"]
        reasons += [f"{b.subject} is {b.state}: {b.causes[0]}" for b in blocked]
        fixes = blocked[0].advice if blocked else ("it goes on by itself",)
        return Explanation(subject, True, f"ending ({verb})", tuple(reasons), fixes)
    state = f"{listing.state}; nothing is open; the last one: {info.last_outcome or 'none'}"
    return Explanation(subject, False, state)


def _held_back(subject: str, held: Sequence[OpenTransaction]) -> Explanation:
    causes = []
    for each in held:
        who = each.transactional_id or f"producer {each.producer.producer_id}, known to nobody"
        causes.append(
            f"transaction {who} is open from offset {each.producer.open_from}: "
            f"{each.held_back} offsets wait for it"
        )
    advice = tuple(
        f"`suiro why txn:{each.transactional_id}`" for each in held if each.transactional_id
    )
    return Explanation(
        subject, True, "held back for readers of committed records", tuple(causes), advice
    )


def _absent(view: ClusterView, node_id: NodeId) -> str:
    for node in view.nodes:
        if node.node_id == node_id:
            word = "is fenced: nothing is heard of it" if node.fenced else "is up, and lags"
            return f"node {node_id} at {node.address} {word}"
    return f"node {node_id} is not registered"


def _gives_up(member: GroupMemberInfo, now_ms: int) -> str:
    what = ", ".join(map(str, member.revoking))
    return (
        f"{_who(member)} has not given up {what} yet; last heard {_ago(now_ms, member)} ago, "
        "and others wait for it"
    )


def _who(member: GroupMemberInfo) -> str:
    return f"member {member.member_id} ({member.client_id} at {member.host})"


def _ago(now_ms: int, member: GroupMemberInfo) -> str:
    return f"{max(now_ms - member.last_heard_ms, 0) / 1000:.1f} s"


def _ids(nodes: Sequence[NodeId]) -> str:
    return ", ".join(map(str, nodes)) or "none"
