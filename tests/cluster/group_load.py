"""A record into each partition every so often, from a process of its own; says where it ended.

    python -m tests.cluster.group_load BOOTSTRAP TOPIC PARTITIONS EVERY_S

It goes on until its standard input ends, and then prints how many records each partition got.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from suiro.aio import Producer

if TYPE_CHECKING:
    from collections.abc import Iterator

FLUSH_S = 60.0


async def send(bootstrap: str, topic: str, partitions: int, every_s: float) -> int:
    """How many records each partition got."""
    told_to_stop = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    sent = 0
    async with Producer(bootstrap, linger_ms=0, delivery_timeout_ms=60_000) as producer:
        while not told_to_stop.done():
            for number in range(partitions):
                producer.send(topic, b"%f" % time.monotonic(), partition=number)
            sent += 1
            await asyncio.sleep(every_s)
        await producer.flush(timeout_s=FLUSH_S)
    return sent


@contextlib.contextmanager
def load(bootstrap: str, topic: str, partitions: int, every_s: float) -> Iterator[dict[str, int]]:
    """Load while it is open; afterwards what it yielded says where the logs end."""
    command = [sys.executable, "-m", "tests.cluster.group_load", bootstrap, topic]
    process = subprocess.Popen(
        [*command, str(partitions), str(every_s)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    ends: dict[str, int] = {}
    try:
        yield ends
        out, _ = process.communicate(timeout=2 * FLUSH_S)
        assert process.returncode == 0, "the load failed"
        ends |= {f"{topic}-{number}": int(out) for number in range(partitions)}
    finally:
        process.kill()
        process.wait()


def main() -> None:
    bootstrap, topic, partitions, every_s = sys.argv[1:]
    print(asyncio.run(send(bootstrap, topic, int(partitions), float(every_s))))


if __name__ == "__main__":
    main()
