"""`suiro group`: look at consumer groups: members, lag, why they rebalanced; delete them.

Changing offsets is in `group_reset`.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final

import typer

from suiro.cli.common import Bootstrap, Output, print_table, printed
from suiro.cli.group_reset import reset_offsets

if TYPE_CHECKING:
    from collections.abc import Iterable

    from suiro.group_info import GroupInfo, GroupMemberInfo, GroupRebalance, PartitionLag
    from suiro.model.ids import TopicPartition

groups = typer.Typer(help="Look at consumer groups, and move them.", no_args_is_help=True)
groups.command("reset-offsets")(reset_offsets)

LAG_COLUMNS: Final = (
    *("TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "SECONDS"),
    *("OWNER", "CLIENT", "HOST"),
)
MEMBER_COLUMNS: Final = (
    *("MEMBER", "CLIENT", "HOST", "INSTANCE", "EPOCH"),
    *("OWNS", "GIVES-UP", "WAITS-FOR", "LAST-HEARD"),
)

GroupName = Annotated[str, typer.Argument(metavar="GROUP", help="The group's name.")]


@groups.command("list")
def list_groups(
    state: Annotated[
        list[str] | None, typer.Option(help="Only these: empty, stable, reconciling; repeatable.")
    ] = None,
    output: Output = "table",
    bootstrap: Bootstrap = None,
) -> None:
    """List the groups, with their states and coordinators.

    Example: suiro group list --state stable
    """
    from suiro.admin import Admin

    with Admin(bootstrap) as admin:
        found = admin.groups.list_groups(state or ())
    if printed(output, [asdict(g) | {"coordinator": str(g.coordinator)} for g in found]):
        return
    rows = [(g.group, g.state, g.members, g.coordinator) for g in found]
    print_table(("GROUP", "STATE", "MEMBERS", "COORDINATOR"), rows)


@groups.command()
def describe(group: GroupName, output: Output = "table", bootstrap: Bootstrap = None) -> None:
    """Show how far a group is behind, who reads what, and why that last changed.

    Lag in seconds is the age of the first record that is not read. Lag in records counts offsets
    from that record on, up to the first transaction that is open; the marker that ends a
    transaction takes one, too.

    Example: suiro group describe billing
    """
    from suiro.admin import Admin

    with Admin(bootstrap) as admin:
        info = admin.groups.describe_group(group)
        lags = admin.groups.group_lag(info)
    if printed(output, _described(info, lags)):
        return
    behind = [lag.records for lag in lags if lag.records is not None]
    oldest = max((lag.seconds for lag in lags if lag.seconds is not None), default=0.0)
    typer.echo(
        f"{group}: {info.state}, {len(info.members)} members, assignor {info.assignor or '-'}, "
        f"epoch {info.epoch}, coordinator {info.coordinator}"
    )
    typer.echo(f"lag: {sum(behind)} records, {oldest:.1f} s")
    if info.history:
        last = info.history[-1]
        typer.echo(f"last rebalance: {_time(last.at_ms)}, {last.moved} moved: {last.reason}")
    typer.echo("")
    print_table(LAG_COLUMNS, (_lag_row(lag, info.owner_of(lag.partition)) for lag in lags))


@groups.command()
def members(group: GroupName, output: Output = "table", bootstrap: Bootstrap = None) -> None:
    """Show the members of a group, and what each has, gives up and is to get.

    Example: suiro group members billing
    """
    from suiro.admin import Admin

    with Admin(bootstrap) as admin:
        info = admin.groups.describe_group(group)
    if printed(output, [_member_json(m) for m in info.members]):
        return
    rows = [
        (
            m.member_id,
            m.client_id,
            m.host,
            m.instance_id or "-",
            m.member_epoch,
            _listed(m.assigned),
            _listed(m.revoking),
            _listed(set(m.target) - set(m.assigned)),
            _time(m.last_heard_ms),
        )
        for m in info.members
    ]
    print_table(MEMBER_COLUMNS, rows)


@groups.command()
def history(
    group: GroupName,
    moves: Annotated[bool, typer.Option("--moves", help="Say what moved, too.")] = False,
    output: Output = "table",
    bootstrap: Bootstrap = None,
) -> None:
    """Show when and why a group's partitions were shared out anew; the last sixteen times.

    Example: suiro group history billing --moves
    """
    from suiro.admin import Admin

    with Admin(bootstrap) as admin:
        info = admin.groups.describe_group(group)
    if printed(output, [_rebalance_json(done) for done in info.history]):
        return
    if not moves:
        rows = [(_time(d.at_ms), d.epoch, d.moved, d.reason) for d in info.history]
        print_table(("TIME", "EPOCH", "MOVED", "REASON"), rows)
        return
    for done in info.history:
        typer.echo(f"{_time(done.at_ms)}  epoch {done.epoch}, {done.moved} moved: {done.reason}")
        for move in done.moves:
            typer.echo(f"  {move.partition}: {move.source or 'nobody'} -> {move.destination}")


@groups.command()
def delete(
    group: GroupName,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    bootstrap: Bootstrap = None,
) -> None:
    """Forget a group and its committed offsets; refused while it has members.

    Example: suiro group delete billing --yes
    """
    from suiro.admin import Admin

    if not yes:
        typer.confirm(f"Delete the group {group} and its committed offsets?", abort=True)
    with Admin(bootstrap) as admin:
        admin.groups.delete_group(group)
    typer.echo(f"deleted {group}")


def _lag_row(lag: PartitionLag, owner: GroupMemberInfo | None) -> tuple[object, ...]:
    seconds = "-" if lag.seconds is None else f"{lag.seconds:.1f}"
    who = ("-", "-", "-") if owner is None else (owner.member_id, owner.client_id, owner.host)
    numbers = (_or_dash(lag.committed), _or_dash(lag.end), _or_dash(lag.records))
    return lag.partition.topic, lag.partition.partition, *numbers, seconds, *who


def _or_dash(number: int | None) -> object:
    return "-" if number is None else number


def _described(info: GroupInfo, lags: list[PartitionLag]) -> dict[str, object]:
    return {
        "group": info.group,
        "state": info.state,
        "assignor": info.assignor,
        "epoch": info.epoch,
        "coordinator": str(info.coordinator),
        "members": [_member_json(m) for m in info.members],
        "last_rebalance": _rebalance_json(info.history[-1]) if info.history else None,
        "partitions": [_lag_json(lag, info.owner_of(lag.partition)) for lag in lags],
    }


def _lag_json(lag: PartitionLag, owner: GroupMemberInfo | None) -> dict[str, object]:
    return {
        "topic": lag.partition.topic,
        "partition": lag.partition.partition,
        "committed": lag.committed,
        "metadata": lag.metadata,
        "start": lag.start,
        "end": lag.end,
        "lag": lag.records,
        "lag_seconds": lag.seconds,
        "owner": None if owner is None else owner.member_id,
        "client_id": None if owner is None else owner.client_id,
        "host": None if owner is None else owner.host,
    }


def _member_json(member: GroupMemberInfo) -> dict[str, object]:
    lists = {
        name: [str(p) for p in getattr(member, name)] for name in ("assigned", "revoking", "target")
    }
    return asdict(member) | lists


def _rebalance_json(done: GroupRebalance) -> dict[str, object]:
    moves = [
        {"partition": str(m.partition), "from": m.source or None, "to": m.destination}
        for m in done.moves
    ]
    return asdict(done) | {"moves": moves}


def _listed(partitions: Iterable[TopicPartition]) -> str:
    return ",".join(map(str, sorted(partitions))) or "-"


def _time(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"
