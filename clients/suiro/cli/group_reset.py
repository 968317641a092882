"""`suiro group reset-offsets`: where a group shall go on, planned first and then carried out."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from suiro.cli.common import Bootstrap, Output, print_table, printed
from suiro.model.errors import InvalidRequest
from suiro.model.ids import TopicPartition

if TYPE_CHECKING:
    from suiro.admin import Admin
    from suiro.aio.group_admin import Target
    from suiro.group_info import OffsetReset


def reset_offsets(
    group: Annotated[str, typer.Argument(metavar="GROUP", help="The group's name.")],
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", "-t", help="orders, or orders:0,3 for some of it; repeatable."),
    ] = None,
    all_topics: Annotated[
        bool, typer.Option("--all-topics", help="Whatever the group has offsets of.")
    ] = False,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="Read it all again.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="Skip what is there.")] = False,
    to_offset: Annotated[int | None, typer.Option(help="To this offset.")] = None,
    shift_by: Annotated[
        int | None, typer.Option(help="So many records on, or back: --shift-by=-100.")
    ] = None,
    to_datetime: Annotated[
        str | None,
        typer.Option(help="To the first record from then on: 2026-11-18T09:00:00+01:00, or …Z."),
    ] = None,
    from_file: Annotated[
        Path | None, typer.Option(help="topic,partition,offset as CSV, or what -o json printed.")
    ] = None,
    new: Annotated[bool, typer.Option("--new", help="The group may be a new one.")] = False,
    execute: Annotated[
        bool, typer.Option("--execute", help="Do it; else it is only shown.")
    ] = False,
    output: Output = "table",
    bootstrap: Bootstrap = None,
) -> None:
    """Say where a group shall go on. Shows what would change; --execute changes it.

    Refused while the group has members: stop its consumers first. Offsets that are not in the log
    are moved to the nearest that is.

    Example: suiro group reset-offsets billing --topic orders --to-datetime 2026-11-18T09:00:00Z
    """
    from suiro.admin import Admin

    ways = {
        "--to-earliest": to_earliest or None,
        "--to-latest": to_latest or None,
        "--to-offset": to_offset,
        "--shift-by": shift_by,
        "--to-datetime": to_datetime,
        "--from-file": from_file,
    }
    way = _chosen(ways)
    with Admin(bootstrap) as admin:
        if from_file is not None:
            listed = _read(from_file)
            scope, target = list(listed), _at(listed)
        else:
            scope = _scope(admin, group, topic or [], all_topics=all_topics)
            target = _target(way)
        plan = admin.groups.plan_reset(group, scope, target, is_new=new)
        if execute:
            admin.groups.reset_offsets(group, plan)
    _show(plan, output, is_done=execute)


@dataclass(frozen=True, slots=True)
class _Way:
    option: str
    value: bool | int | str | Path


def _chosen(ways: dict[str, bool | int | str | Path | None]) -> _Way:
    given = [_Way(option, value) for option, value in ways.items() if value is not None]
    if len(given) != 1:
        raise InvalidRequest(f"say one of {', '.join(ways)}")
    return given[0]


def _target(way: _Way) -> Target:
    from suiro.aio.group_admin import shift_by
    from suiro.aio.offsets import Bound

    match way:
        case _Way("--to-earliest"):
            return Bound.EARLIEST
        case _Way("--to-latest"):
            return Bound.LATEST
        case _Way("--shift-by", int(number)):
            return shift_by(number)
        case _Way("--to-datetime", str(text)):
            return _timestamp_ms(text)
        case _Way("--to-offset", int(offset)):
            return lambda _partition, _before: offset
        case _:
            raise AssertionError(f"{way.option} has no target")


def _timestamp_ms(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidRequest(f"'{text}' is not a date and time: 2026-11-18T09:00:00Z") from None
    if moment.tzinfo is None:
        raise InvalidRequest(f"'{text}' needs a time zone: {text}Z, or {text}+01:00")
    return round(moment.timestamp() * 1000)


def _scope(
    admin: Admin, group: str, topics: list[str], *, all_topics: bool
) -> list[TopicPartition]:
    if bool(topics) == all_topics:
        raise InvalidRequest("say either --topic or --all-topics")
    if all_topics:
        return list(admin.groups.group_offsets(group))
    found = []
    for text in topics:
        name, colon, numbers = text.partition(":")
        count = len(admin.describe_topic(name).partitions)
        chosen = _numbers(text, numbers) if colon else range(count)
        found += [TopicPartition(name, number) for number in chosen]
    return found


def _numbers(text: str, listed: str) -> list[int]:
    try:
        return [int(number) for number in listed.split(",")]
    except ValueError:
        raise InvalidRequest(f"'{text}' is not a topic and partitions: orders:0,3") from None


def _at(offsets: dict[TopicPartition, int]) -> Target:
    from suiro.aio.group_admin import as_listed

    return as_listed(offsets)


def _read(path: Path) -> dict[TopicPartition, int]:
    """Lines of CSV, with or without a heading, or a list of objects as `-o json` prints it."""
    try:
        text = path.read_text()
    except OSError as error:
        raise InvalidRequest(f"{path}: {error.strerror}") from None
    try:
        if text.lstrip().startswith("["):
            rows = [(row["topic"], row["partition"], row["offset"]) for row in json.loads(text)]
        else:
            lines = [line for line in csv.reader(text.splitlines()) if line]
            rows = [(t, p, o) for t, p, o in lines if p.strip() != "partition"]
        return {TopicPartition(t.strip(), int(p)): int(o) for t, p, o in rows}
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidRequest(f"{path} is not topic,partition,offset: {error}") from None


def _show(plan: list[OffsetReset], output: str, *, is_done: bool) -> None:
    rows = [
        {
            "topic": reset.partition.topic,
            "partition": reset.partition.partition,
            "before": reset.before,
            "offset": reset.after,
            "note": reset.note,
        }
        for reset in plan
    ]
    if printed(output, rows):
        return
    print_table(
        ("TOPIC", "PARTITION", "BEFORE", "AFTER", "NOTE"),
        (
            (
                reset.partition.topic,
                reset.partition.partition,
                "-" if reset.before is None else reset.before,
                reset.after,
                reset.note,
            )
            for reset in plan
        ),
    )
    done = "reset" if is_done else "would be reset; nothing was changed, add --execute to do it"
    typer.echo(f"{len(plan)} offsets {done}")
