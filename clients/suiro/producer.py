"""The producer for ordinary threads: the asyncio producer on a loop of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from suiro import aio
from suiro.loop_thread import LoopThread
from suiro.model.errors import BufferFull

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suiro.handle import Sent
    from suiro.settings import ProducerSettings


class Producer:
    """Sends records.

    ```python
    with suiro.Producer("suiro://localhost") as producer:
        handle = producer.send("clicks", b"hello", key=b"user-1")
        print(handle.result().offset)
    ```

    Leaving the `with` delivers everything. Safe to share between threads.
    """

    def __init__(
        self,
        bootstrap: str | None = None,
        *,
        settings: ProducerSettings | None = None,
        **given: Any,
    ) -> None:
        self._producer = aio.Producer(bootstrap, settings=settings, **given)
        self._loop = LoopThread()
        try:
            self._loop.run(self._producer.__aenter__())
        except BaseException:
            self._loop.run(self._producer.connection.transport.close())
            self._loop.close()
            raise

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes | None]] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Sent:
        """Take one record; the handle tells what becomes of it. Blocks while the buffer is full,
        for at most `max_block_ms`.
        """
        while True:
            try:
                return self._producer.send(
                    topic,
                    value,
                    key=key,
                    headers=headers,
                    partition=partition,
                    timestamp_ms=timestamp_ms,
                )
            except BufferFull:
                self._loop.run(self._producer.room())

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until everything sent so far is stored or has failed."""
        self._loop.run(self._producer.flush(timeout_s))

    def close(self, timeout_s: float | None = None) -> None:
        """Deliver what is waiting, then let go of everything."""
        try:
            self._loop.run(self._producer.close(timeout_s))
        finally:
            self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
