"""`suiro health`, `can-restart` and `drain`: what whoever restarts or removes nodes must know."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from suiro.cli.common import VERDICT_NO, Bootstrap, parse_rate, print_table
from suiro.cli.output import Output, printed
from suiro.cli.progress import Progress
from suiro.cluster_view import against_restart, problems
from suiro.model.errors import UnknownBroker
from suiro.model.ids import NodeId

if TYPE_CHECKING:
    from collections.abc import Callable

    from suiro.admin import Admin
    from suiro.cluster_view import ClusterView, Problem

LOOK_S = 0.5

NodeNumber = Annotated[int, typer.Argument(metavar="NODE", help="The node's id.")]
Wait = Annotated[
    float, typer.Option("--wait", help="Look again for so many seconds until the answer is yes.")
]


def health(wait: Wait = 0.0, output: Output = "table", bootstrap: Bootstrap = None) -> None:
    """Say whether the cluster is well, and what is not. Exit code 3 if it is not.

    Example: suiro health --wait 60
    """
    view, found = _judge(bootstrap, wait, problems)
    data = {
        "healthy": not found,
        "cluster_id": view.cluster_id,
        "controller": view.controller,
        "nodes": len(view.nodes),
        "topics": len(view.topics),
        "partitions": sum(len(topic.partitions) for topic in view.topics.values()),
        "reassigning": view.reassigning,
        "problems": found,
    }
    if not printed(output, data):
        verdict = "healthy" if not found else f"{len(found)} problems"
        typer.echo(
            f"{verdict}: {data['nodes']} nodes, {data['topics']} topics, "
            f"{data['partitions']} partitions, controller {view.controller}"
        )
        _show(found)
    if found:
        raise typer.Exit(VERDICT_NO)


def can_restart(
    node: NodeNumber, wait: Wait = 0.0, output: Output = "table", bootstrap: Bootstrap = None
) -> None:
    """Say whether a node may stop now without making a partition unwritable. Exit code 3 if not.

    Example: suiro can-restart 2 --wait 120
    """
    _, found = _judge(bootstrap, wait, lambda view: against_restart(view, NodeId(node)))
    if not printed(output, {"node": node, "can_restart": not found, "problems": found}):
        typer.echo(f"node {node} {'may not' if found else 'may'} be restarted now")
        _show(found)
    if found:
        raise typer.Exit(VERDICT_NO)


def drain(
    node: NodeNumber,
    throttle: Annotated[
        str | None, typer.Option(help="What each broker may send for it: 50MB/s.")
    ] = None,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Begin, and leave it to `suiro reassign status`.")
    ] = False,
    bootstrap: Bootstrap = None,
) -> None:
    """Move every replica off a broker, so that it can be removed for good.

    Example: suiro drain 4 --throttle 50MB/s
    """
    from suiro.admin import Admin

    with Admin(bootstrap) as admin:
        known = admin.describe_cluster().nodes
        if not any(n.address.node_id == node and "broker" in n.roles for n in known):
            raise UnknownBroker(f"there is no broker {node}")
        plan = admin.plan_drain(node)
        if plan:
            admin.reassign(plan, throttle_bytes_per_s=parse_rate(throttle))
        typer.echo(f"{len(plan)} partitions leave broker {node}")
        if not no_wait and plan:
            _watch(admin, len(plan))
            typer.echo(f"broker {node} holds nothing any more: it may be stopped and removed")


def _judge(
    bootstrap: str | None, wait_s: float, judge: Callable[[ClusterView], list[Problem]]
) -> tuple[ClusterView, list[Problem]]:
    from suiro.admin import Admin

    until_s = time.monotonic() + wait_s  # noqa: TID251 - a person's patience
    with Admin(bootstrap) as admin:
        while True:
            view = admin.look()
            found = judge(view)
            if not found or time.monotonic() >= until_s:  # noqa: TID251
                return view, found
            time.sleep(LOOK_S)


def _show(found: list[Problem]) -> None:
    if found:
        print_table(("PROBLEM", "WHAT", "WHY"), [(p.kind, p.subject, p.text) for p in found])


def _watch(admin: Admin, count: int) -> None:
    with Progress("drained", count) as progress:
        while moving := admin.reassignments():
            left = sum(each.bytes_left for each in moving)
            progress.show(count - len(moving), f"{left / 1e6:.1f} MB left")
            time.sleep(LOOK_S)
        progress.show(count, "")
