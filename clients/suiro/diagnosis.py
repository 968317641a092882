"""What `suiro doctor` makes of what it met: pure verdicts on addresses, clocks and versions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suiro.cluster_view import Problem
    from suiro.model.ids import Address, NodeId

SKEW_MS_MAX: Final = 500
"""Timestamps of records and retention go by the time of day; leases and elections do not."""


class Door(Enum):
    """What was met at an address."""

    NODE = "a node"
    NO_SUCH_NAME = "no such name"
    REFUSED = "nothing listens there"
    SILENT = "no answer"
    HTTP = "an HTTP server"
    TLS = "TLS is spoken there, and this client speaks none"
    OTHER = "something else"


@dataclass(frozen=True, slots=True)
class Visit:
    """One address, and who was met there."""

    address: Address
    door: Door
    detail: str = ""
    node_id: NodeId | None = None
    cluster_id: str = ""
    roles: tuple[str, ...] = ()
    software: str = ""
    ready: bool = False
    skew_ms: int = 0
    """Its clock minus ours, as far as that is certain."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's report."""

    level: str
    """ok, warning or error"""
    check: str
    subject: str
    text: str
    advice: str = ""


def judge_bootstrap(visits: Sequence[Visit]) -> list[Finding]:
    """Where the client was told to begin."""
    return [_of_bootstrap(visit) for visit in visits]


def _of_bootstrap(visit: Visit) -> Finding:
    where = str(visit.address)
    if visit.door is not Door.NODE:
        return Finding("error", "bootstrap", where, visit.door.value, _ADVICE[visit.door])
    if visit.roles == ("controller",):
        text = f"node {visit.node_id} is a controller, which serves no clients"
        return Finding("error", "bootstrap", where, text, "give the address of a broker")
    if "broker" not in visit.roles:
        text = f"node {visit.node_id} is a coordinator ({', '.join(visit.roles)})"
        return Finding("error", "bootstrap", where, text, "give the address of a broker")
    text = f"node {visit.node_id} of cluster {visit.cluster_id}"
    if not visit.ready:
        return Finding("warning", "bootstrap", where, f"{text} is not ready yet", "wait for it")
    return Finding("ok", "bootstrap", where, text)


_ADVICE: Final = {
    Door.NO_SUCH_NAME: "check the host's name, and DNS on this machine",
    Door.REFUSED: "check the port (clients use 9750), and that the node runs",
    Door.SILENT: "check the host, and firewalls on the way",
    Door.HTTP: "this looks like the port for metrics; clients use `listen` of the node (9750)",
    Door.TLS: "this software has no TLS yet: give the plain port, or put the client behind the "
    "same proxy that ends TLS for the node",
    Door.OTHER: "this port belongs to another program; clients use `listen` of the node (9750)",
}


def judge_nodes(visits: Mapping[NodeId, Visit]) -> list[Finding]:
    """Every node at the address that it tells clients: reachable from here, and who it says."""
    found = []
    for node_id, visit in sorted(visits.items()):
        subject = f"node {node_id}"
        where = str(visit.address)
        if visit.door is not Door.NODE:
            text = f"{where}: {visit.door.value}"
            found.append(Finding("error", "node", subject, text, _NODE_ADVICE[visit.door]))
        elif visit.node_id != node_id:
            text = f"at {where} is node {visit.node_id} of cluster {visit.cluster_id}"
            found.append(Finding("error", "node", subject, text, "check `advertise` of both"))
        else:
            found.append(Finding("ok", "node", subject, f"{', '.join(visit.roles)} at {where}"))
    return found


_NODE_ADVICE: Final = {
    **_ADVICE,
    Door.REFUSED: "the node is dead: start it, and look at the end of its log",
    Door.SILENT: "the machine is away, or `advertise` names what cannot be reached from here",
    Door.NO_SUCH_NAME: "`advertise` of that node names a host that this machine cannot look up",
}


def judge_clocks(visits: Sequence[Visit]) -> list[Finding]:
    """Nodes whose clock differs; if all do by the same, it is ours that is wrong."""
    met = sorted(
        {v.node_id: v for v in visits if v.node_id is not None}.values(),
        key=lambda v: v.node_id or 0,
    )
    wrong = [visit for visit in met if abs(visit.skew_ms) > SKEW_MS_MAX]
    if not wrong:
        return [Finding("ok", "clock", f"{len(met)} nodes", "agree with this machine")] * bool(met)
    spread = max(v.skew_ms for v in met) - min(v.skew_ms for v in met)
    if len(met) > 1 and len(wrong) == len(met) and spread <= SKEW_MS_MAX:
        text = f"is {_shift(-wrong[0].skew_ms)} all nodes"
        return [Finding("warning", "clock", "this machine", text, "set its clock (NTP)")]
    return [
        Finding(
            "warning",
            "clock",
            f"node {visit.node_id}",
            f"its clock is {_shift(visit.skew_ms)} this machine's",
            "set its clock (NTP): record timestamps and retention go by it",
        )
        for visit in wrong
    ]


def judge_versions(visits: Sequence[Visit]) -> list[Finding]:
    kinds = sorted({visit.software for visit in visits if visit.software})
    if len(kinds) > 1:
        text = f"several versions run: {', '.join(kinds)}"
        return [Finding("warning", "version", "cluster", text, "finish the upgrade")]
    return [Finding("ok", "version", "cluster", kinds[0])] if kinds else []


def judge_problems(problems: Sequence[Problem]) -> list[Finding]:
    if not problems:
        return [Finding("ok", "health", "cluster", "every partition is led and in sync")]
    return [
        Finding(
            "error" if p.kind in {"offline", "unwritable", "no-controller"} else "warning",
            "health",
            p.subject,
            f"{p.kind}: {p.text}",
            f"`suiro why {p.subject.rpartition('-')[0]}`" if p.kind in _OF_PARTITION else "",
        )
        for p in problems
    ]


_OF_PARTITION: Final = {"offline", "unwritable", "under-replicated"}


def _shift(skew_ms: int) -> str:
    return f"{abs(skew_ms) / 1000:.1f} s {'ahead of' if skew_ms > 0 else 'behind'}"
