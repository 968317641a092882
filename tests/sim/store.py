"""A `Store` in memory that forgets at a crash what no sync has covered.

A synced write makes every write before it durable too, as in a write-ahead log. A crash keeps a
prefix of the unsynced writes, each whole: how many is drawn from the Random, because an operating
system may have written some of them out by itself.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suiro.model.errors import StorageFailed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from random import Random

Range = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class _Write:
    puts: tuple[tuple[bytes, bytes], ...]
    deletes: tuple[bytes, ...]
    ranges: tuple[Range, ...]


class StoreDisk:
    """What outlives the process: the durable writes, and those that may or may not survive."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._durable: dict[bytes, bytes] = {}
        self._unsynced: list[_Write] = []
        self._opened: ForgetfulStore | None = None
        self.fail_writes = False
        """Set to let every write from now on fail, as on a broken or full disk."""

    def open(self) -> ForgetfulStore:
        """The store as a process finds it when it starts; only one may have it open."""
        if self._opened is not None and not self._opened.is_closed:
            raise StorageFailed("the store is open in another process")
        content = dict(self._durable)
        for write in self._unsynced:
            _carry_out(content, write)
        self._opened = ForgetfulStore(self, content)
        return self._opened

    def crash(self) -> None:
        """The power fails: of what was not synced, only some of the oldest writes are left. What
        still runs of the process can write nothing more.
        """
        if self._opened is not None:
            self._opened.close()
        for write in self._unsynced[: self._rng.randint(0, len(self._unsynced))]:
            _carry_out(self._durable, write)
        self._unsynced.clear()

    def flip_bits(self, ending: bytes, rng: Random) -> int:
        """In every stored value whose key has this in it; how many that were. Behind everyone's
        back: no process may have it open.
        """
        assert self._opened is None or self._opened.is_closed
        for write in self._unsynced:
            _carry_out(self._durable, write)
        self._unsynced.clear()
        hit = [key for key, value in self._durable.items() if ending in key and value]
        for key in hit:
            value = bytearray(self._durable[key])
            value[rng.randrange(len(value))] ^= 1 << rng.randrange(8)
            self._durable[key] = bytes(value)
        return len(hit)

    def kill(self) -> None:
        """The process dies, the machine does not: nothing is lost, and nothing more is written."""
        if self._opened is not None:
            self._opened.close()

    def store(self, write: _Write, *, sync: bool) -> None:
        if self.fail_writes:
            raise StorageFailed("the simulated disk has failed")
        self._unsynced.append(write)
        if sync:
            for unsynced in self._unsynced:
                _carry_out(self._durable, unsynced)
            self._unsynced.clear()


class ForgetfulStore:
    """Implements `Store` for one life of a process."""

    def __init__(self, disk: StoreDisk, content: dict[bytes, bytes]) -> None:
        self._disk = disk
        self._content = content
        self._keys = sorted(content)
        self._failure: str | None = None
        self.is_closed = False

    def get(self, key: bytes) -> bytes | None:
        self._check()
        return self._content.get(key)

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        self._check()
        found = self._keys[bisect_left(self._keys, start) : bisect_left(self._keys, end)]
        return iter([(key, self._content[key]) for key in found])

    def write(
        self,
        puts: Sequence[tuple[bytes, bytes]] = (),
        deletes: Sequence[bytes] = (),
        ranges: Sequence[Range] = (),
        *,
        sync: bool,
    ) -> None:
        self._check()
        write = _Write(tuple(puts), tuple(deletes), tuple(ranges))
        try:
            self._disk.store(write, sync=sync)
        except StorageFailed as error:
            self._failure = error.message
            raise
        self._keep_keys(write)

    def close(self) -> None:
        self.is_closed = True
        self._failure = self._failure or "the store is closed"

    def _keep_keys(self, write: _Write) -> None:
        """Carry the write out, and keep the keys in order without sorting them all again."""
        before = len(self._content)
        _carry_out(self._content, write)
        if write.deletes or write.ranges:
            self._keys = sorted(self._content)
        elif len(self._content) > before:
            for key, _ in write.puts:
                at = bisect_left(self._keys, key)
                if at == len(self._keys) or self._keys[at] != key:
                    insort(self._keys, key)

    def _check(self) -> None:
        if self._failure is not None:
            raise StorageFailed(self._failure)


def _carry_out(content: dict[bytes, bytes], write: _Write) -> None:
    for start, end in write.ranges:
        for key in [key for key in content if start <= key < end]:
            del content[key]
    for key in write.deletes:
        content.pop(key, None)
    content.update(write.puts)
