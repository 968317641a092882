"""`suiro produce`: lines of text to records."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from suiro.cli.common import Bootstrap, TopicName
from suiro.model.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suiro.handle import Sent


def produce(
    topic: TopicName,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="Read lines from a file, not from stdin.")
    ] = None,
    key_separator: Annotated[
        str | None,
        typer.Option("--key-separator", "-k", help="What stands between key and value in a line."),
    ] = None,
    partition: Annotated[int | None, typer.Option(help="Send everything to this one.")] = None,
    acks: Annotated[str, typer.Option(help="all, 1 or 0.")] = "all",
    compression: Annotated[str, typer.Option(help="none, gzip, snappy, lz4 or zstd.")] = "none",
    bootstrap: Bootstrap = None,
) -> None:
    """Send each line as a record; every one of them is stored when the command ends.

    Example: printf 'a:1\\nb:2\\n' | suiro produce clicks --key-separator :
    """
    from suiro.producer import Producer

    failed: list[Sent] = []
    sent = 0

    def check(handle: Sent) -> None:
        if not handle.succeeded():
            failed.append(handle)

    with Producer(bootstrap, acks=acks, compression=compression) as producer:
        for line in _lines(file):
            key, value = _split(line, key_separator)
            producer.send(topic, value, key=key, partition=partition).add_callback(check)
            sent += 1
    if failed:
        typer.echo(f"suiro: {len(failed)} of {sent} records were not stored", err=True)
        failed[0].result(0)


def _lines(file: Path | None) -> Iterator[bytes]:
    if file is None:
        yield from (line.rstrip(b"\r\n") for line in sys.stdin.buffer)
        return
    try:
        with file.open("rb") as lines:
            yield from (line.rstrip(b"\r\n") for line in lines)
    except OSError as error:
        raise InvalidRequest(f"{file}: {error.strerror}") from None


def _split(line: bytes, separator: str | None) -> tuple[bytes | None, bytes]:
    if separator is None:
        return None, line
    key, found, value = line.partition(separator.encode())
    if not found:
        raise InvalidRequest(f"no '{separator}' in the line {line[:80]!r}")
    return key, value
