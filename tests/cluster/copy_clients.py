"""The copier of the consume-transform-produce workload, on real time and on virtual time alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suiro.aio import ExactlyOnce

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable, Sequence

    from suiro.aio import Consumer, Producer
    from suiro.model.record import Record

SOURCE = "in"
COPY = "out"
GROUP = "copiers"


def f(value: bytes) -> bytes:
    """What the copier makes of a record."""
    return b"f(" + value + b")"


async def copy(consumer: Consumer, producer: Producer, stop: asyncio.Event) -> int:
    """Every record of the source becomes one of the copy, with its key; how many were copied."""

    def work(records: Sequence[Record]) -> None:
        for record in records:
            assert record.value is not None
            producer.send(COPY, f(record.value), key=record.key)

    copying, count = ExactlyOnce(consumer, producer, work), 0
    consumer.subscribe(SOURCE)
    while not stop.is_set():
        count += await copying.step(timeout_s=0.5)
    return count


def check_copy(source: Iterable[Record], copied: Iterable[Record]) -> list[str]:
    """All that is wrong with the copy: it has to be f(source), once, in order for every key."""
    found = []
    wanted, made = _by_key(source), _by_key(copied)
    for key in sorted(wanted.keys() | made.keys()):
        expected = [f(value) for value in wanted.get(key, [])]
        actual = made.get(key, [])
        if expected != actual:
            lost, extra = set(expected) - set(actual), len(actual) - len(set(actual))
            found.append(
                f"key {key!r}: {len(expected)} were to be copied, {len(actual)} are there; "
                f"lost {len(lost)}, duplicates {extra}, first lost {sorted(lost)[:3]}"
            )
    return found


def _by_key(records: Iterable[Record]) -> dict[bytes, list[bytes]]:
    """In the order of their offsets: a key lies in one partition."""
    found: dict[bytes, list[bytes]] = {}
    for record in sorted(records, key=lambda r: (r.partition, r.offset)):
        assert record.key is not None
        assert record.value is not None
        found.setdefault(record.key, []).append(record.value)
    return found
