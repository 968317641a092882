"""`suiro reassign`: move replicas between brokers, with a plan, a throttle and an estimate."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from suiro._proto import admin_pb2 as pb
from suiro.cli.common import Bootstrap, Output, parse_rate, print_table, printed
from suiro.model.errors import InvalidRequest
from suiro.model.ids import NodeId, TopicPartition
from suiro.reassign_plan import Placed
from suiro.transport.methods import AdminMethods

if TYPE_CHECKING:
    from suiro.admin import Admin
    from suiro.aio.moving import Moving
    from suiro.reassign_plan import Plan

reassign = typer.Typer(help="Move replicas between brokers.", no_args_is_help=True)

SAMPLE_S: Final = 1.0
"""Between two looks at how far it is, for the rate."""


@reassign.command()
def plan(
    to_brokers: Annotated[
        str | None, typer.Option(help="Spread over these brokers: 1,2,3,4.", show_default=False)
    ] = None,
    drain: Annotated[int | None, typer.Option(help="Move everything off this broker.")] = None,
    topics: Annotated[str | None, typer.Option(help="Only these: a,b; else all.")] = None,
    output: Output = "table",
    bootstrap: Bootstrap = None,
) -> None:
    """Say where replicas would go, with the fewest moves; nothing is changed.

    Example: suiro reassign plan --to-brokers 1,2,3,4 -o json > plan.json
    """
    from suiro.admin import Admin

    if (to_brokers is None) == (drain is None):
        raise InvalidRequest("say either --to-brokers or --drain")
    names = None if topics is None else topics.split(",")
    with Admin(bootstrap) as admin:
        if drain is not None:
            planned = admin.plan_drain(drain, names)
        else:
            assert to_brokers is not None
            planned = admin.plan_spread(names, _numbers(to_brokers))
        before = {
            (name, number): partition.replicas
            for name, info in admin.topics().items()
            for number, partition in enumerate(info.partitions)
        }
    if printed(output, _to_json(planned)):
        return
    rows = [
        (p.topic, p.partition, _listed(before[p.topic, p.partition]), _listed(p.replicas))
        for p in planned
    ]
    print_table(("TOPIC", "PARTITION", "FROM", "TO"), rows)
    moved = sum(len(set(p.replicas) - set(before[p.topic, p.partition])) for p in planned)
    typer.echo(f"{len(planned)} partitions change, {moved} replicas are copied")


@reassign.command()
def execute(
    plan_file: Annotated[Path, typer.Option("--plan", help="What `plan -o json` printed.")],
    throttle: Annotated[
        str | None, typer.Option(help="Bytes each broker may send to new replicas: 50MB/s.")
    ] = None,
    bootstrap: Bootstrap = None,
) -> None:
    """Begin to carry a plan out. Without a throttle it goes as fast as it can.

    Example: suiro reassign execute --plan plan.json --throttle 50MB/s
    """
    from suiro.admin import Admin

    planned = _from_json(plan_file)
    with Admin(bootstrap) as admin:
        admin.reassign(planned, throttle_bytes_per_s=parse_rate(throttle))
    typer.echo(f"{len(planned)} partitions are on their way; see `suiro reassign status --watch`")


@reassign.command()
def status(
    watch: Annotated[bool, typer.Option("--watch", help="Until it is done.")] = False,
    output: Output = "table",
    bootstrap: Bootstrap = None,
) -> None:
    """Show what is under way: bytes left, percent, rate and how long it will take.

    Example: suiro reassign status --watch
    """
    from suiro.admin import Admin

    with Admin(bootstrap) as admin:
        while True:
            found, rates = _sample(admin)
            if not printed(output, [_moving_json(m, rates[m.partition]) for m in found]):
                _show(found, rates)
                _show_throttle(admin)
            if not watch or not found:
                return


@reassign.command()
def throttle(
    rate: Annotated[str, typer.Argument(help="50MB/s, or 0 for no limit.")],
    bootstrap: Bootstrap = None,
) -> None:
    """Change the throttle of what is under way.

    Example: suiro reassign throttle 100MB/s
    """
    from suiro.admin import Admin

    with Admin(bootstrap) as admin:
        admin.throttle(parse_rate(rate))
    typer.echo(f"throttle: {rate}")


@reassign.command()
def cancel(
    topic: Annotated[str | None, typer.Option(help="Of this topic; else all.")] = None,
    partition: Annotated[int | None, typer.Option(help="Only this partition.")] = None,
    bootstrap: Bootstrap = None,
) -> None:
    """Put what is under way back as it was.

    Example: suiro reassign cancel --topic orders
    """
    from suiro.admin import Admin

    with Admin(bootstrap) as admin:
        if topic is not None:
            admin.describe_topic(topic)
        chosen = [
            moving.partition
            for moving in admin.reassignments()
            if topic in {None, moving.partition.topic}
            and partition in {None, moving.partition.partition}
        ]
        admin.cancel_reassignments(chosen)
    for name in chosen:
        typer.echo(f"cancelled {name}")
    if not chosen:
        typer.echo("nothing is under way")


# -- progress -------------------------------------------------------------------------------------


def _sample(admin: Admin) -> tuple[list[Moving], dict[TopicPartition, float]]:
    """What is under way, and bytes per second by which less of it is left, over a second."""
    before = {moving.partition: moving.bytes_left for moving in admin.reassignments()}
    if not before:
        return [], {}
    time.sleep(SAMPLE_S)
    found = admin.reassignments()
    rates = {
        m.partition: max(0, before.get(m.partition, m.bytes_left) - m.bytes_left) / SAMPLE_S
        for m in found
    }
    return found, rates


def _show(found: list[Moving], rates: dict[TopicPartition, float]) -> None:
    if not found:
        typer.echo("nothing is under way")
        return
    rows = [
        (
            m.partition,
            _listed(m.adding),
            _listed(m.removing),
            _listed(m.isr),
            _size(m.bytes_left),
            f"{m.percent:.0f}%",
            f"{_size(rates[m.partition])}/s",
            _duration(m.bytes_left, rates[m.partition]),
        )
        for m in found
    ]
    print_table(("PARTITION", "ADDING", "REMOVING", "ISR", "LEFT", "DONE", "RATE", "ETA"), rows)
    left, total = sum(m.bytes_left for m in found), sum(m.bytes_total for m in found)
    rate = sum(rates.values())
    done = 100 if not total else 100 * (1 - left / total)
    typer.echo(
        f"{len(found)} partitions, {_size(left)} left of {_size(total)} ({done:.0f}%), "
        f"{_size(rate)}/s, ETA {_duration(left, rate)}"
    )


def _show_throttle(admin: Admin) -> None:
    reply = admin.ask(AdminMethods.LIST_REASSIGNMENTS, pb.ListReassignmentsRequest())
    if reply.reassignments and reply.throttle_bytes_per_s:
        typer.echo(f"throttle: {_size(reply.throttle_bytes_per_s)}/s from each broker")


def _moving_json(moving: Moving, rate: float) -> dict[str, object]:
    return {
        "topic": moving.partition.topic,
        "partition": moving.partition.partition,
        "adding": moving.adding,
        "removing": moving.removing,
        "isr": moving.isr,
        "bytes_total": moving.bytes_total,
        "bytes_left": moving.bytes_left,
        "percent": round(moving.percent, 1),
        "bytes_per_s": rate,
        "eta_s": None if moving.bytes_left and not rate else moving.bytes_left / max(rate, 1),
    }


def _duration(bytes_left: float, rate: float) -> str:
    if not bytes_left:
        return "now"
    if not rate:
        return "unknown"
    seconds = int(bytes_left / rate) + 1
    hours, minutes = seconds // 3600, seconds % 3600 // 60
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{seconds % 60:02}s"


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"


# -- words to numbers and back --------------------------------------------------------------------


def _numbers(text: str) -> list[int]:
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise InvalidRequest(f"'{text}' is not a list of broker ids such as 1,2,3") from None


def _listed(node_ids: tuple[NodeId, ...]) -> str:
    return ",".join(map(str, node_ids)) or "-"


def _to_json(planned: Plan) -> dict[str, object]:
    return {
        "version": 1,
        "partitions": [
            {"topic": p.topic, "partition": p.partition, "replicas": list(p.replicas)}
            for p in planned
        ],
    }


def _from_json(path: Path) -> Plan:
    try:
        content = json.loads(path.read_text())
        return [
            Placed(
                item["topic"],
                int(item["partition"]),
                tuple(NodeId(int(n)) for n in item["replicas"]),
            )
            for item in content["partitions"]
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidRequest(f"{path} is not a plan: {error!r}") from None
