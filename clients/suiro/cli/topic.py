"""`suiro topic`: make, list, describe, change and delete topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from suiro.cli.common import (
    Bootstrap,
    Output,
    TopicName,
    parse_rate,
    parse_time_ms,
    partition_of,
    print_table,
    printed,
)
from suiro.model.errors import InvalidConfig, InvalidRequest
from suiro.model.records import Recovery

if TYPE_CHECKING:
    from suiro.connection import TopicInfo
    from suiro.model.ids import NodeId

topics = typer.Typer(help="Make, list, describe, change and delete topics.", no_args_is_help=True)

RECOVERY: Final = {
    Recovery.LAST_STANDING: "last-standing (it crashed; what it had not synced may be lost)",
    Recovery.UNCLEAN: "unclean-election (acknowledged records may be lost)",
}


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
    output: Output = "table",
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
    listed = [dict(zip(("topic", "partitions", "replicas"), row, strict=True)) for row in rows]
    if not printed(output, listed):
        print_table(("TOPIC", "PARTITIONS", "REPLICAS"), rows)


@topics.command()
def describe(topic: TopicName, output: Output = "table", bootstrap: Bootstrap = None) -> None:
    """Show a topic's partitions, leaders, replicas and settings.

    Example: suiro topic describe orders
    """
    from suiro.admin import Admin

    with Admin(bootstrap) as admin:
        info = admin.describe_topic(topic)
        configs = admin.describe_configs(topic)
    changed = {c.key: c.value for c in configs.values() if not c.is_default}
    if printed(output, _described(info, changed)):
        return
    settings = ",".join(f"{key}={value}" for key, value in changed.items())
    typer.echo(
        f"Topic: {topic}\tTopicId: {info.topic_id.hex()}\tPartitionCount: {len(info.partitions)}"
        f"\tReplicationFactor: {_replication_factor(info)}\tConfigs: {settings}"
    )
    for number, partition in enumerate(info.partitions):
        leader = "none" if partition.leader is None else partition.leader
        line = (
            f"\tTopic: {topic}\tPartition: {number}\tLeader: {leader}"
            f"\tReplicas: {_listed(partition.replicas)}\tIsr: {_listed(partition.isr)}"
        )
        if partition.adding:
            line += f"\tAdding: {_listed(partition.adding)}"
        if partition.recovery:
            line += f"\tRecovery: {RECOVERY[partition.recovery]}"
        typer.echo(line)


@topics.command()
def alter(
    topic: TopicName,
    partitions: Annotated[
        int | None, typer.Option("--partitions", "-p", help="So many; more than it has.")
    ] = None,
    replication_factor: Annotated[
        int | None, typer.Option("--replication-factor", "-r", help="So many copies of each.")
    ] = None,
    throttle: Annotated[
        str | None, typer.Option(help="Bytes each broker may send to new copies: 50MB/s.")
    ] = None,
    bootstrap: Bootstrap = None,
) -> None:
    """Give a topic more partitions, or another number of replicas.

    Example: suiro topic alter orders --partitions 12 --replication-factor 3
    """
    from suiro.admin import Admin

    if partitions is None and replication_factor is None:
        raise InvalidRequest("say --partitions or --replication-factor")
    with Admin(bootstrap) as admin:
        if partitions is not None:
            admin.add_partitions(topic, partitions)
            typer.echo(f"{topic} has {partitions} partitions")
        if replication_factor is not None:
            plan = admin.set_replication_factor(
                topic, replication_factor, throttle_bytes_per_s=parse_rate(throttle)
            )
            typer.echo(
                f"{topic}: {len(plan)} partitions on their way to {replication_factor} replicas; "
                "see `suiro reassign status`"
            )


@topics.command("add-partitions")
def add_partitions(
    topic: TopicName,
    number: Annotated[int, typer.Argument(help="How many more.")],
    bootstrap: Bootstrap = None,
) -> None:
    """Give a topic so many more partitions.

    Example: suiro topic add-partitions orders 6
    """
    from suiro.admin import Admin

    with Admin(bootstrap) as admin:
        has = len(admin.describe_topic(topic).partitions)
        admin.add_partitions(topic, has + number)
    typer.echo(f"{topic} has {has + number} partitions")


@topics.command()
def trim(
    topic: TopicName,
    partition: Annotated[int, typer.Option("--partition", "-p", help="Which one.")],
    before: Annotated[
        int | None, typer.Option(help="Delete what is below this offset; -1: everything.")
    ] = None,
    before_time: Annotated[
        str | None, typer.Option(help="Delete what is older: 2026-11-18T12:00:00Z, or ms.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    bootstrap: Bootstrap = None,
) -> None:
    """Delete the oldest records of a partition, for good.

    Example: suiro topic trim orders --partition 0 --before 1000 --yes
    """
    from suiro.admin import Admin

    if (before is None) == (before_time is None):
        raise InvalidRequest("say either --before or --before-time")
    with Admin(bootstrap) as admin:
        where = partition_of(admin, topic, partition)
        if not yes:
            typer.confirm(f"Delete the oldest records of {where}?", abort=True)
        if before is not None:
            start = admin.delete_records(where, before)
        else:
            start = admin.delete_records_before_time(where, parse_time_ms(before_time or ""))
    typer.echo(f"{where} starts at offset {start}")


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


def _described(info: TopicInfo, configs: dict[str, str]) -> dict[str, object]:
    return {
        "topic": info.name,
        "topic_id": info.topic_id.hex(),
        "partition_count": len(info.partitions),
        "replication_factor": _replication_factor(info),
        "configs": configs,
        "partitions": [
            {
                "partition": number,
                "leader": partition.leader,
                "leader_epoch": partition.leader_epoch,
                "replicas": partition.replicas,
                "isr": partition.isr,
                "adding": partition.adding,
                "recovery": partition.recovery.name.lower(),
            }
            for number, partition in enumerate(info.partitions)
        ],
    }


def _replication_factor(info: TopicInfo) -> int:
    """What it is but for replicas on their way."""
    return min(len(p.replicas) - len(p.adding) for p in info.partitions)


def _listed(node_ids: tuple[NodeId, ...]) -> str:
    return ",".join(map(str, node_ids))


def _key_value(item: str) -> tuple[str, str]:
    key, separator, value = item.partition("=")
    if not separator:
        raise InvalidConfig(f"'{item}' is not key=value")
    return key.strip(), value.strip()
