"""`suiro plan`: how many partitions, how much disk and network a load takes."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Final

import typer

from suiro.capacity import DISK_FILL, Load, Needs, measured_ratio, needs
from suiro.cli.common import Output, parse_rate, print_table, printed
from suiro.model.batch import Compression
from suiro.model.errors import InvalidRequest

SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400}
SAMPLE_BYTES_MAX: Final = 64 << 20


def plan(
    rate: Annotated[float, typer.Option(help="Records per second.")],
    retention: Annotated[str, typer.Option(help="How long they stay: 12h, 7d, 4w.")] = "7d",
    record_bytes: Annotated[
        float | None, typer.Option(help="Bytes of a record; by default the sample's.")
    ] = None,
    replication: Annotated[int, typer.Option(help="Replicas of each partition.")] = 3,
    sample: Annotated[
        Path | None, typer.Option(help="A file with records of yours, one per line.")
    ] = None,
    compression: Annotated[str, typer.Option(help="none, gzip, snappy, lz4 or zstd.")] = "lz4",
    partition_rate: Annotated[
        str, typer.Option(help="What one partition, and its slowest reader, keeps up with.")
    ] = "10MB/s",
    readers: Annotated[float, typer.Option(help="How often each record is read.")] = 1.0,
    output: Output = "table",
) -> None:
    """Plan the capacity of a topic. The compression ratio is measured on a sample of your data.

    Example: suiro plan --rate 50000 --retention 7d --replication 3 --sample clicks.jsonl
    """
    values = [] if sample is None else _sample(sample)
    if record_bytes is None and not values:
        raise InvalidRequest("say --record-bytes, or give a --sample to measure them")
    size = record_bytes or sum(map(len, values)) / len(values)
    ratio = measured_ratio(values, _compression(compression)) if values else 1.0
    load = Load(
        records_per_s=rate,
        record_bytes=size,
        retention_s=_seconds(retention),
        replication_factor=replication,
        compression_ratio=ratio,
        partition_bytes_per_s=parse_rate(partition_rate) or 1,
        consumers_per_broker=readers,
    )
    found = needs(load)
    if not printed(output, {**asdict(load), **asdict(found)}):
        _print(load, found, measured=bool(values))


def _print(load: Load, found: Needs, *, measured: bool) -> None:
    how = "measured on the sample" if measured else "not measured: give a --sample"
    rows = [
        ("records", f"{load.records_per_s:,.0f}/s of {load.record_bytes:,.0f} bytes"),
        ("written", f"{_bytes(found.bytes_per_s)}/s before compression"),
        ("compression", f"{load.compression_ratio:.2f} times smaller ({how})"),
        ("partitions", f"{found.partitions} ({_bytes(load.partition_bytes_per_s)}/s each)"),
        ("disk", f"{_bytes(found.disk_bytes)} in {load.replication_factor} replicas"),
        ("disk to buy", f"{_bytes(found.disk_bytes_with_room)}, {DISK_FILL:.0%} full"),
        ("disk writes", f"{_bytes(found.write_bytes_per_s)}/s, all brokers together"),
        ("network in", f"{_bytes(found.network_in_bytes_per_s)}/s"),
        ("network out", f"{_bytes(found.network_out_bytes_per_s)}/s"),
    ]
    print_table(("WHAT", "HOW MUCH"), rows)


def _sample(path: Path) -> list[bytes]:
    try:
        with path.open("rb") as stream:
            lines = stream.read(SAMPLE_BYTES_MAX).splitlines()
    except OSError as error:
        raise InvalidRequest(f"{path}: {error.strerror}") from None
    values = [line for line in lines if line]
    if not values:
        raise InvalidRequest(f"{path} has no records")
    return values


def _compression(name: str) -> Compression:
    try:
        return Compression[name.upper()]
    except KeyError:
        known = ", ".join(member.name.lower() for member in Compression)
        raise InvalidRequest(f"'{name}' is no compression; choose from {known}") from None


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", text.strip().lower())
    if found is None:
        raise InvalidRequest(f"'{text}' is not a time; write it as 12h or 7d")
    return float(found[1]) * SECONDS[found[2]]


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000 or unit == "TB":
            return f"{count:,.1f} {unit}"
        count /= 1000
    raise AssertionError("the last unit takes everything")
