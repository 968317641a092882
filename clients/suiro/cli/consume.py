"""`suiro consume`: records to lines of text."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from suiro.cli.common import Bootstrap, TopicName
from suiro.model.errors import InvalidRequest, UnknownTopicOrPartition

if TYPE_CHECKING:
    from suiro.model.record import Record


def consume(
    topic: TopicName,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Also what is there already.")
    ] = False,
    number: Annotated[
        int | None, typer.Option("-n", "--max-messages", help="Stop after so many records.")
    ] = None,
    keys: Annotated[bool, typer.Option("--keys", help="Print key, then value.")] = False,
    timestamps: Annotated[bool, typer.Option("--timestamps", help="Print the time first.")] = False,
    offsets: Annotated[
        bool, typer.Option("--offsets", help="Print partition and offset first.")
    ] = False,
    separator: Annotated[str, typer.Option(help="What to print between the fields.")] = "\t",
    partition: Annotated[int | None, typer.Option(help="Only this partition.")] = None,
    timeout: Annotated[
        float | None, typer.Option(help="Stop when nothing came for so many seconds.")
    ] = None,
    isolation: Annotated[
        str, typer.Option(help="read_committed or read_uncommitted.")
    ] = "read_committed",
    group: Annotated[
        str, typer.Option(help="As a member of this group: its share, from where the group is.")
    ] = "",
    rack: Annotated[str, typer.Option(help="Read from in-sync replicas of this rack.")] = "",
    bootstrap: Bootstrap = None,
) -> None:
    """Print records as they come, until -n are printed or Ctrl-C.

    Example: suiro consume clicks --from-beginning --keys -n 2
    """
    from suiro.consumer import Consumer

    if group and partition is not None:
        raise InvalidRequest("a group shares partitions out itself: say --group or --partition")
    reset = "earliest" if from_beginning else "latest"
    text = _LineFormat(separator.encode(), keys, timestamps, offsets)
    printed = 0
    with (
        contextlib.suppress(KeyboardInterrupt),
        Consumer(
            bootstrap,
            auto_offset_reset=reset,
            isolation=isolation,
            client_rack=rack,
            group_id=group,
        ) as consumer,
    ):
        partitions = consumer.partitions_of(topic)
        if group:
            consumer.subscribe(topic)
        else:
            chosen = [p for p in partitions if partition is None or p.partition == partition]
            if not chosen:
                last = len(partitions) - 1
                raise UnknownTopicOrPartition(f"{topic} has the partitions 0 to {last}")
            consumer.assign(chosen)
        while number is None or printed < number:
            wanted = 500 if number is None else min(500, number - printed)
            records = consumer.poll(timeout or 1.0, max_records=wanted)
            if not records and timeout is not None:
                break
            for record in records:
                sys.stdout.buffer.write(text.line(record))
            sys.stdout.buffer.flush()
            printed += len(records)


@dataclass(frozen=True, slots=True)
class _LineFormat:
    """How one record is printed."""

    separator: bytes
    keys: bool
    timestamps: bool
    offsets: bool

    def line(self, record: Record) -> bytes:
        fields = []
        if self.timestamps:
            fields.append(b"CreateTime:%d" % record.timestamp_ms)
        if self.offsets:
            fields.append(b"%d:%d" % (record.partition, record.offset))
        if self.keys:
            fields.append(b"null" if record.key is None else record.key)
        fields.append(b"null" if record.value is None else record.value)
        return self.separator.join(fields) + b"\n"
