"""`suiro log`: look into segment files, and at the disks of the brokers."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from suiro.cli.common import (
    Bootstrap,
    Output,
    TopicName,
    partition_of,
    print_table,
    printed,
)
from suiro.model.batch import HEADER_BYTES, BatchHeader, check_crc, parse_header
from suiro.model.errors import CorruptBatch, InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from suiro.aio.disks import LogDirectoryInfo

    Read = Callable[[int], bytes]

POLL_S = 0.5

logs = typer.Typer(
    help="Look into segment files, and at what is on the disks.", no_args_is_help=True
)


@logs.command()
def dirs(
    topic: Annotated[str | None, typer.Option("--topic", "-t", help="Only this topic.")] = None,
    output: Output = "table",
    bootstrap: Bootstrap = None,
) -> None:
    """Show what each topic takes on each disk of each broker, and what is free there.

    Example: suiro log dirs --topic orders
    """
    from suiro.admin import Admin

    with Admin(bootstrap) as admin:
        if topic is not None:
            admin.describe_topic(topic)
        found = [_with_only(topic, directory) for directory in admin.log_directories()]
    if printed(output, found):
        return
    rows: list[tuple[object, ...]] = []
    for directory in found:
        sizes: Counter[str] = Counter()
        counts: Counter[str] = Counter()
        for replica in directory.replicas:
            sizes[replica.partition.topic] += replica.size_bytes
            counts[replica.partition.topic] += 1
        where = (directory.broker, directory.path or "-")
        if directory.error is not None:
            rows.append((*where, "-", "-", "-", f"FAILED: {directory.error}"))
        rows += [(*where, name, counts[name], sizes[name], "") for name in sorted(sizes)]
        if topic is None and directory.error is None:
            free = f"{directory.free_bytes} free"
            rows.append((*where, "(all)", counts.total(), sizes.total(), free))
    print_table(("BROKER", "DIRECTORY", "TOPIC", "REPLICAS", "BYTES", ""), rows)


def _with_only(topic: str | None, directory: LogDirectoryInfo) -> LogDirectoryInfo:
    held = directory.replicas
    return replace(directory, replicas=tuple(r for r in held if topic in {None, r.partition.topic}))


@logs.command()
def move(
    topic: TopicName,
    partition: Annotated[int, typer.Argument(help="The partition's number.")],
    broker: Annotated[int, typer.Option(help="Whose replica.")],
    to: Annotated[str, typer.Option(help="A log directory of that broker, by its path.")],
    wait: Annotated[bool, typer.Option(help="Return when it is there.")] = True,
    bootstrap: Bootstrap = None,
) -> None:
    """Move a replica to another log directory of its broker, while it is in use.

    Example: suiro log move orders 0 --broker 1 --to /disk2/log
    """
    from suiro.admin import Admin

    with Admin(bootstrap) as admin:
        where = partition_of(admin, topic, partition)
        admin.move_replica(where, broker=broker, to=to)
        while wait:
            found = [
                (directory.path, replica)
                for directory in admin.log_directories()
                if directory.broker == broker
                for replica in directory.replicas
                if replica.partition == where
            ]
            if any(path == to for path, _ in found):
                typer.echo(f"{where} of broker {broker} is in {to}")
                return
            if found and found[0][1].moving_to is None:
                raise InvalidRequest(f"{where} was not moved; the broker's log says why")
            time.sleep(POLL_S)


@logs.command()
def verify(
    directory: Annotated[Path, typer.Argument(help="A partition's folder: data/log/clicks-0")],
    output: Output = "table",
) -> None:
    """Check every batch of a partition's files: checksums, offsets without a gap, epochs in order.

    Exits with 1 at the first bad place. Reads only; the broker may be running, but then the end of
    the last file may be in the middle of a write.

    Example: suiro log verify data/log/clicks-0
    """
    files = sorted(directory.glob("*.log"))
    if not files:
        raise InvalidRequest(f"{directory} has no segments")
    end: int | None = None
    epoch = records = batches = size = 0
    for file in files:
        with file.open("rb") as stream:
            position, whole = 0, file.stat().st_size
            while position < whole:
                try:
                    _, header = _read_batch(stream.read, whole - position)
                    _check_follows(header, end, epoch, file, position)
                except CorruptBatch as error:
                    bad = {"file": file.name, "position": position, "error": str(error)}
                    if not printed(output, {"good": False, **bad}):
                        typer.echo(f"{file.name} at {position}: {error}")
                    raise typer.Exit(1) from None
                end, epoch = header.end, header.leader_epoch
                position += header.size
                records += header.record_count
                batches += 1
            size += whole
    counts = {"segments": len(files), "batches": batches, "records": records, "bytes": size}
    if not printed(output, {"good": True, **counts, "end": end}):
        counted = ", ".join(f"{count} {what}" for what, count in counts.items())
        typer.echo(f"{counted}, offsets up to {end}: good")


def _check_follows(
    header: BatchHeader, end: int | None, epoch: int, file: Path, position: int
) -> None:
    if position == 0 and header.base_offset != int(file.stem):
        raise CorruptBatch(f"begins with offset {header.base_offset}, not with its name's")
    if end is not None and header.base_offset != end:
        raise CorruptBatch(f"offset {header.base_offset} does not follow {end}")
    if header.leader_epoch < epoch:
        raise CorruptBatch(f"leader epoch falls from {epoch} to {header.leader_epoch}")


@logs.command()
def dump(
    file: Annotated[Path, typer.Argument(help="A segment: 00000000000000000000.log")],
    records: Annotated[bool, typer.Option("--records", help="Print the records as well.")] = False,
) -> None:
    """Print the batches of a segment file in readable form, and where the first bad one is.

    Example: suiro log dump data/log/clicks-0/00000000000000000000.log --records
    """
    try:
        size = file.stat().st_size
        stream = file.open("rb")
    except OSError as error:
        raise InvalidRequest(f"{file}: {error.strerror}") from None
    with stream:
        position = 0
        while position < size:
            try:
                data, header = _read_batch(stream.read, size - position)
            except CorruptBatch as error:
                typer.echo(f"position {position}: {error}; {size - position} bytes are left")
                raise typer.Exit(1) from None
            _print_batch(position, header)
            if records:
                _print_records(data)
            position += header.size


def _read_batch(read: Read, left: int) -> tuple[bytes, BatchHeader]:
    head = read(HEADER_BYTES)
    if len(head) < HEADER_BYTES:
        raise CorruptBatch(f"{len(head)} bytes cannot hold a header")
    header = parse_header(head)
    if header.size > left:
        raise CorruptBatch(f"the header promises {header.size} bytes, {left} are there")
    data = head + read(header.size - HEADER_BYTES)
    check_crc(data, header)
    return data, header


def _print_batch(position: int, header: BatchHeader) -> None:
    flags = [
        name
        for name, is_set in (
            ("transactional", header.is_transactional),
            ("control", header.is_control),
        )
        if is_set
    ]
    typer.echo(
        f"position {position} offsets {header.base_offset}..{header.last_offset} "
        f"records {header.record_count} bytes {header.size} epoch {header.leader_epoch} "
        f"compression {header.compression.name.lower()} "
        f"time {header.base_timestamp_ms}..{header.max_timestamp_ms} "
        f"producer {header.producer_id}/{header.producer_epoch} sequence {header.base_sequence} "
        f"crc {header.crc:#010x}{''.join(' ' + flag for flag in flags)}"
    )


def _print_records(data: bytes) -> None:
    from suiro.model.columns import decode

    for record in decode(data, verify_crc=False).records("", 0):
        headers = f" headers {record.headers!r}" if record.headers else ""
        typer.echo(
            f"  {record.offset} {record.timestamp_ms} key {record.key!r} value {record.value!r}"
            f"{headers}"
        )
