"""`suiro log`: look into segment files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from suiro.model.batch import HEADER, HEADER_BYTES, BatchHeader, check_crc, check_header
from suiro.model.errors import CorruptBatch, InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    Read = Callable[[int], bytes]

logs = typer.Typer(help="Look into segment files.", no_args_is_help=True)


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
    header = BatchHeader._make(HEADER.unpack(head))
    check_header(header)
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
