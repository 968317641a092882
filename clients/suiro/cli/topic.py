"""`suiro topic`: make, list, describe and delete topics."""

from __future__ import annotations

from typing import Annotated

import typer

from suiro.cli.common import Bootstrap, TopicName, print_table
from suiro.model.errors import InvalidConfig

topics = typer.Typer(help="Make, list, describe and delete topics.", no_args_is_help=True)


@topics.command()
def create(
    topic: TopicName,
    partitions: Annotated[
        int, typer.Option("--partitions", "-p", help="How many; 0: the cluster's default.")
    ] = 0,
    replication_factor: Annotated[
        int, typer.Option("--replication-factor", "-r", help="Copies; 0: the cluster's default.")
    ] = 0,
    config: Annotated[
        list[str] | None, typer.Option("--config", "-c", help="A setting, key=value; repeatable.")
    ] = None,
    bootstrap: Bootstrap = None,
) -> None:
    """Make a topic.

    Example: suiro topic create orders --partitions 6 --config retention.ms=3600000
    """
    from suiro.admin import Admin

    configs = dict(_key_value(item) for item in config or [])
    with Admin(bootstrap) as admin:
        info = admin.create_topic(
            topic, partitions=partitions, replication_factor=replication_factor, configs=configs
        )
    copies = len(info.partitions[0].replicas)
    typer.echo(f"created {topic}: {len(info.partitions)} partitions, {copies} replicas each")


@topics.command("list")
def list_topics(
    internal: Annotated[bool, typer.Option(help="Show Suiro's own topics too.")] = False,
    bootstrap: Bootstrap = None,
) -> None:
    """List the topics.

    Example: suiro topic list
    """
    from suiro.admin import Admin

    with Admin(bootstrap) as admin:
        found = admin.topics()
    rows = [
        (t.name, len(t.partitions), len(t.partitions[0].replicas) if t.partitions else 0)
        for t in sorted(found.values(), key=lambda t: t.name)
        if internal or not t.internal
    ]
    print_table(("TOPIC", "PARTITIONS", "REPLICAS"), rows)


@topics.command()
def describe(topic: TopicName, bootstrap: Bootstrap = None) -> None:
    """Show a topic's partitions, leaders, replicas and settings.

    Example: suiro topic describe orders
    """
    from suiro.admin import Admin

    with Admin(bootstrap) as admin:
        info = admin.describe_topic(topic)
        configs = admin.describe_configs(topic)
    changed = ",".join(f"{c.key}={c.value}" for c in configs.values() if not c.is_default)
    copies = len(info.partitions[0].replicas)
    typer.echo(
        f"Topic: {topic}  TopicId: {info.topic_id.hex()}  PartitionCount: {len(info.partitions)}  "
        f"ReplicationFactor: {copies}  Configs: {changed}"
    )
    rows = [
        (
            topic,
            number,
            "none" if p.leader is None else p.leader,
            p.leader_epoch,
            ",".join(map(str, p.replicas)),
            ",".join(map(str, p.isr)),
        )
        for number, p in enumerate(info.partitions)
    ]
    print_table(("TOPIC", "PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR"), rows)


@topics.command()
def delete(
    topic: TopicName,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    bootstrap: Bootstrap = None,
) -> None:
    """Delete a topic and all its records.

    Example: suiro topic delete orders --yes
    """
    from suiro.admin import Admin

    if not yes:
        typer.confirm(f"Delete {topic} and all its records?", abort=True)
    with Admin(bootstrap) as admin:
        admin.delete_topic(topic)
    typer.echo(f"deleted {topic}")


def _key_value(item: str) -> tuple[str, str]:
    key, separator, value = item.partition("=")
    if not separator:
        raise InvalidConfig(f"'{item}' is not key=value")
    return key.strip(), value.strip()
