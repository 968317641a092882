"""A copier as a process of its own, to be killed: `python -m tests.cluster.copy_process BOOTSTRAP
NAME`. It ends when its standard input does.
"""

from __future__ import annotations

import asyncio
import sys

from suiro.aio import Consumer, Producer
from suiro.loop_thread import new_loop

from tests.cluster.copy_clients import GROUP, copy


async def main() -> None:
    bootstrap, name = sys.argv[1:]
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def wait_for_end() -> None:
        sys.stdin.read()
        loop.call_soon_threadsafe(stop.set)

    waiting = loop.run_in_executor(None, wait_for_end)
    async with (
        Consumer(
            bootstrap,
            group_id=GROUP,
            client_id=name,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6_000,
            heartbeat_interval_ms=1_000,
            max_poll_records=200,
        ) as consumer,
        Producer(
            bootstrap, client_id=name, transactional_id=name, transaction_timeout_ms=10_000
        ) as producer,
    ):
        await copy(consumer, producer, stop)
    await waiting


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main())
