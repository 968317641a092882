"""What one task has to send and others produce: whatever waits when it asks leaves together.

So messages grow with the load, and nothing waits while there is none. Who puts must bound what he
puts: an outbox is as long as the list of those who wait for its contents to arrive.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Outbox(Generic[T]):
    """Many put, one takes."""

    __slots__ = ("_arrived", "_bytes_max", "_items")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._items: deque[tuple[T, int]] = deque()
        self._arrived = asyncio.Event()

    def put(self, item: T, size_bytes: int) -> None:
        self._items.append((item, size_bytes))
        self._arrived.set()

    async def take(self) -> list[T]:
        """All that waits, in order, at least one; no more than `bytes_max` but for the first."""
        while not self._items:
            self._arrived.clear()
            await self._arrived.wait()
        item, left = self._items.popleft()
        taken = [item]
        left = self._bytes_max - left
        while self._items and self._items[0][1] <= left:
            item, size = self._items.popleft()
            taken.append(item)
            left -= size
        return taken
