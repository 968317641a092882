"""`suiro config`: the settings of topics, brokers and the cluster, while they run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from suiro.cli.common import Bootstrap, Output, print_table, printed
from suiro.model.configs import BROKER_SETTINGS, SETTINGS, TOPIC_SETTINGS, setting
from suiro.model.errors import InvalidRequest
from suiro.model.records import ConfigResource

if TYPE_CHECKING:
    from suiro._proto.admin_pb2 import ConfigEntry
    from suiro.model.configs import Setting

configs = typer.Typer(
    help="Read, change and explain settings; without --topic or --broker, the cluster's.",
    no_args_is_help=True,
)

OfTopic = Annotated[str | None, typer.Option("--topic", "-t", help="The settings of this topic.")]
OfBroker = Annotated[int | None, typer.Option("--broker", help="The settings of this broker.")]


@configs.command()
def get(
    keys: Annotated[list[str] | None, typer.Argument(help="Which; all if none is named.")] = None,
    topic: OfTopic = None,
    broker: OfBroker = None,
    output: Output = "table",
    bootstrap: Bootstrap = None,
) -> None:
    """Show the settings that hold, and where each comes from.

    Example: suiro config get retention.ms --topic orders
    """
    found = _entries(topic, broker, bootstrap)
    resource = _resource(topic, broker)
    wanted = [setting(resource, key).name for key in keys] if keys else sorted(found)
    if printed(output, {key: _as_data(found[key]) for key in wanted}):
        return
    rows = [(key, found[key].value, found[key].source) for key in wanted]
    print_table(("SETTING", "VALUE", "FROM"), rows)


@configs.command(name="set")
def set_(
    changes: Annotated[list[str], typer.Argument(help="KEY=VALUE; KEY= takes the setting back.")],
    topic: OfTopic = None,
    broker: OfBroker = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only check the values.")] = False,
    bootstrap: Bootstrap = None,
) -> None:
    """Set settings, all of them or none. They hold at once, without a restart.

    Example: suiro config set retention.ms=86400000 cleanup.policy= --topic orders
    """
    from suiro.admin import Admin

    wanted = dict(_change(item) for item in changes)
    with Admin(bootstrap) as admin:
        before = admin.describe_configs(topic, broker=broker)
        admin.alter_configs(wanted, topic=topic, broker=broker, validate_only=dry_run)
        after = before if dry_run else admin.describe_configs(topic, broker=broker)
    for key, value in wanted.items():
        now = value or after[key].default_value if dry_run else after[key].value
        typer.echo(f"{key}: {before[key].value} -> {now}{' (not done)' if dry_run else ''}")


@configs.command()
def explain(
    keys: Annotated[list[str] | None, typer.Argument(help="Which; all if none is named.")] = None,
    output: Output = "table",
) -> None:
    """Say what a setting does, what it may be, and when to change it.

    Example: suiro config explain min.insync.replicas
    """
    table = SETTINGS[ConfigResource.CLUSTER]
    rows = [setting(ConfigResource.CLUSTER, key) for key in keys] if keys else table.values()
    if not printed(output, {row.name: _explanation(row)._asdict() for row in rows}):
        typer.echo("\n\n".join(map(_explained, rows)))


@configs.command()
def diff(
    topic: Annotated[list[str] | None, typer.Option("--topic", "-t", help="One or two.")] = None,
    broker: Annotated[list[int] | None, typer.Option("--broker", help="One or two.")] = None,
    output: Output = "table",
    bootstrap: Bootstrap = None,
) -> None:
    """Show what is not as by default, or in what two topics or two brokers differ.

    Example: suiro config diff --topic orders --topic payments
    """
    topics, brokers = topic or [], broker or []
    if len(topics) + len(brokers) > 2 or (topics and brokers):
        raise InvalidRequest("one or two topics, or one or two brokers, can be compared")
    if len(topics) == 2 or len(brokers) == 2:
        first = _entries(*_pick(topics, brokers, 0), bootstrap)
        second = _entries(*_pick(topics, brokers, 1), bootstrap)
        names = (topics or [f"broker {number}" for number in brokers])[:2]
        rows = [
            (key, first[key].value, second[key].value)
            for key in sorted(first)
            if first[key].value != second[key].value
        ]
        if not printed(output, {key: {names[0]: one, names[1]: two} for key, one, two in rows}):
            print_table(("SETTING", names[0], names[1]), rows)
        return
    found = _entries(*_pick(topics, brokers, 0), bootstrap)
    changed = [entry for _, entry in sorted(found.items()) if not entry.is_default]
    if printed(output, {entry.key: _as_data(entry) for entry in changed}):
        return
    print_table(
        ("SETTING", "VALUE", "DEFAULT", "FROM"),
        [(entry.key, entry.value, entry.default_value, entry.source) for entry in changed],
    )


def _pick(topics: list[str], brokers: list[int], number: int) -> tuple[str | None, int | None]:
    return (
        topics[number] if number < len(topics) else None,
        brokers[number] if number < len(brokers) else None,
    )


def _entries(
    topic: str | None, broker: int | None, bootstrap: str | None
) -> dict[str, ConfigEntry]:
    from suiro.admin import Admin

    with Admin(bootstrap) as admin:
        return admin.describe_configs(topic, broker=broker)


def _resource(topic: str | None, broker: int | None) -> ConfigResource:
    if topic is not None:
        return ConfigResource.TOPIC
    return ConfigResource.CLUSTER if broker is None else ConfigResource.BROKER


def _change(item: str) -> tuple[str, str | None]:
    key, equals, value = item.partition("=")
    if not equals:
        raise InvalidRequest(f"'{item}' is not KEY=VALUE")
    return key.strip(), value or None


def _as_data(entry: ConfigEntry) -> dict[str, str]:
    return {"value": entry.value, "default": entry.default_value, "source": entry.source}


class _Explanation(NamedTuple):
    of: list[str]
    default: str
    what_it_does: str
    what_it_may_be: str
    when_to_change_it: str


def _explanation(row: Setting) -> _Explanation:
    tables = (("topic", TOPIC_SETTINGS), ("broker", BROKER_SETTINGS))
    return _Explanation(
        of=[name for name, table in tables if row.name in table],
        default=row.format(row.default),
        what_it_does=row.doc,
        what_it_may_be=row.bounds,
        when_to_change_it=row.change,
    )


def _explained(row: Setting) -> str:
    said = _explanation(row)
    of = " or ".join(f"a {name}" for name in said.of)
    return (
        f"{row.name}  (of {of} or the cluster; default {said.default})\n"
        f"  What it does: {said.what_it_does}\n"
        f"  What it may be: {said.what_it_may_be}\n"
        f"  When to change it: {said.when_to_change_it}"
    )
