"""A user's program, which `make check` puts before mypy --strict as it does all of tests/."""

from __future__ import annotations

import asyncio

import suiro
from suiro import aio


def write() -> int:
    with suiro.Producer("suiro://localhost", linger_ms=5, compression="zstd") as producer:
        handle: suiro.Sent = producer.send("clicks", b"hello", key=b"user-1")
        stored: suiro.RecordMetadata = handle.result(10)
        many: suiro.SentMany = producer.send_many("clicks", [b"one", None], keys=[b"a", b"b"])
        offsets: list[int] = [each.offset for each in many.result(10)]
        return stored.offset + len(offsets)


def read() -> list[bytes]:
    values: list[bytes] = []
    with suiro.Consumer(group_id="readers", auto_offset_reset="earliest") as consumer:
        consumer.subscribe("clicks")
        values += [record.value for record in consumer.poll(1.0) if record.value is not None]
        first: suiro.Record = consumer.poll()[0]
        values.append(first.key or b"")
        where = suiro.TopicPartition("clicks", 0)
        consumer.seek(where, consumer.offset_of(where, suiro.Bound.LATEST))
    return values


def manage() -> list[str]:
    try:
        with suiro.Admin() as admin:
            info = admin.create_topic("clicks", partitions=3, configs={"retention.ms": "1000"})
            return [info.name, *admin.topics()]
    except suiro.errors.TopicExists as error:
        return [error.message]


async def all_of_it() -> int:
    async with aio.Producer() as producer, aio.Consumer(group_id="readers") as consumer:
        stored = await producer.send("clicks", b"hello")
        consumer.subscribe("clicks")
        async for record in consumer:
            return record.offset + stored.offset
    return 0


if __name__ == "__main__":
    asyncio.run(all_of_it())
