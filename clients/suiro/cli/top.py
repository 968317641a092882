"""`suiro top` and `suiro bench`: how fast it goes, and how fast it can."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from suiro.cli.common import Bootstrap, in_loop, print_table
from suiro.cli.output import Output, printed
from suiro.cli.progress import Progress
from suiro.model.errors import TimedOut, TopicExists

if TYPE_CHECKING:
    from suiro.aio.traffic import TopicRate
    from suiro.consumer import Consumer
    from suiro.producer import Producer

BENCH_TOPIC = "suiro-bench"
CHUNK = 10_000
PATIENCE_S = 60.0


def top(
    interval: Annotated[float, typer.Option(help="Seconds between two looks.")] = 2.0,
    number: Annotated[int, typer.Option("-n", help="Stop after so many looks; 0: Ctrl-C.")] = 0,
    internal: Annotated[bool, typer.Option(help="Show Suiro's own topics too.")] = False,
    output: Output = "table",
    bootstrap: Bootstrap = None,
) -> None:
    """Show the busiest topics: records and bytes per second, size, what transactions hold back.

    Example: suiro top --interval 1 -n 5
    """
    try:
        in_loop(_top(bootstrap, interval, number, internal, output))
    except KeyboardInterrupt:
        typer.echo("")


async def _top(
    bootstrap: str | None, interval_s: float, number: int, internal: bool, output: str
) -> None:
    from suiro.aio import Admin
    from suiro.aio.traffic import rates, sample

    async with Admin(bootstrap) as admin:
        looks, before = 0, await sample(admin)
        while not number or looks < number:
            await asyncio.sleep(interval_s)
            after = await sample(admin)
            found = rates(before, after, interval_s)
            shown = [r for r in found if internal or not r.topic.startswith("__")]
            if not printed(output, shown):
                _show(shown)
            before, looks = after, looks + 1


def _show(found: list[TopicRate]) -> None:
    if sys.stdout.isatty():
        typer.echo("\x1b[2J\x1b[H", nl=False)
    rows = [
        (
            rate.topic,
            rate.partitions,
            f"{rate.records_per_s:.0f}",
            f"{rate.bytes_per_s / 1e6:.2f}",
            f"{rate.size_bytes / 1e6:.1f}",
            rate.stable_lag,
        )
        for rate in found
    ]
    print_table(("TOPIC", "PARTITIONS", "RECORDS/S", "MB/S", "MB", "HELD-BACK"), rows)


def bench(
    records: Annotated[int, typer.Option(help="How many to send, then to read.")] = 1_000_000,
    size: Annotated[int, typer.Option(help="Bytes of each value.")] = 100,
    topic: Annotated[str, typer.Option(help="Made if it is not there.")] = BENCH_TOPIC,
    acks: Annotated[Literal["0", "1", "all"], typer.Option(help="Who has to hold it.")] = "all",
    compression: Annotated[str, typer.Option(help="none, gzip, snappy, lz4 or zstd.")] = "none",
    output: Output = "table",
    bootstrap: Bootstrap = None,
) -> None:
    """Send records and read them back, from this one process; says how fast each went.

    Example: suiro bench --records 1000000 --size 100
    """
    from suiro.admin import Admin
    from suiro.aio.offsets import Bound
    from suiro.consumer import Consumer
    from suiro.producer import Producer

    wanted = acks if acks == "all" else int(acks)
    with Admin(bootstrap) as admin, contextlib.suppress(TopicExists):
        admin.create_topic(topic)
    with Consumer(bootstrap) as consumer:
        with Producer(bootstrap, acks=wanted, compression=compression) as producer:
            names = consumer.partitions_of(topic)
            starts = {name: consumer.offset_of(name, Bound.LATEST) for name in names}
            sent_s = _timed_send(producer, topic, records, size)
        consumer.assign(starts)
        read_s = _timed_read(consumer, records)
    result: dict[str, object] = {
        "records": records,
        "size": size,
        "acks": acks,
        "compression": compression,
    }
    result |= _speed("produce", records, size, sent_s) | _speed("consume", records, size, read_s)
    if not printed(output, result):
        for what, seconds in (("sent and acknowledged", sent_s), ("read", read_s)):
            rate = records / seconds
            typer.echo(
                f"{records} records {what} in {seconds:.2f} s: "
                f"{rate:.0f} records/s, {rate * size / 1e6:.1f} MB/s"
            )


def _speed(what: str, records: int, size: int, seconds: float) -> dict[str, object]:
    return {
        f"{what}_seconds": round(seconds, 3),
        f"{what}_records_per_s": round(records / seconds),
        f"{what}_bytes_per_s": round(records * size / seconds),
    }


def _timed_send(producer: Producer, topic: str, records: int, size: int) -> float:
    """Until the last one is acknowledged."""
    values = [bytes(size)] * CHUNK
    began_s = time.perf_counter()
    with Progress("sent", records) as progress:
        sent = []
        for start in range(0, records, CHUNK):
            sent.append(producer.send_many(topic, values[: min(CHUNK, records - start)]))
            progress.show(start)
        for each in sent:
            each.wait(PATIENCE_S)
        progress.show(records)
    return time.perf_counter() - began_s


def _timed_read(consumer: Consumer, records: int) -> float:
    began_s = time.perf_counter()
    done = 0
    with Progress("read", records) as progress:
        while done < records:
            table = consumer.poll_arrow(PATIENCE_S, max_records=CHUNK)
            if not table.num_rows:
                raise TimedOut(
                    f"{done} of {records} records came, then none for {PATIENCE_S:.0f} s"
                )
            done += table.num_rows
            progress.show(done)
    return time.perf_counter() - began_s
