"""What a member of the quorum keeps on disk: log, votes, snapshot, and where the others live.

    o                        whose store this is: written by `format`, checked by `load`
    h                        term, vote, commit
    e <index>                one entry
    s                        the snapshot's index, term, size, checksum and configuration
    c <index> <number>       a piece of the snapshot of that index
    a <node>                 the last known address of a controller

Everything that a Ready wants stored is one write, so that after a crash all of it is there or none.
A large snapshot is staged in pieces before the one small write that makes it count; pieces that
never came to count are removed at the next start. Every method blocks: see Offload.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from suiro.model.errors import ClusterIdMismatch, InvalidConfig, NotFormatted, StorageFailed
from suiro.model.ids import Address, NodeId

from cluster.controller_quorum.conf import ConfState, DirectoryId, Member
from cluster.controller_quorum.messages import Entry, EntryKind, HardState, Snapshot, Stored

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cluster.host.store import Store

OWNER: Final = b"o"
HARD_STATE: Final = b"h"
SNAPSHOT: Final = b"s"
FIRST_ENTRY: Final = b"e"
LAST_ENTRY: Final = b"f"
FIRST_PIECE: Final = b"c"
LAST_PIECE: Final = b"d"
FIRST_ADDRESS: Final = b"a"
LAST_ADDRESS: Final = b"b"
LAST_KEY: Final = b"\xff"

PIECE_BYTES: Final = 1 << 20

_INDEX = struct.Struct(">cQ")
_PIECE = struct.Struct(">cQI")
_NODE = struct.Struct(">cq")
_ENTRY = struct.Struct(">QB")
_HARD_STATE = struct.Struct(">QQ?q")
_HEADER = struct.Struct(">QQQI")


@dataclass(frozen=True, slots=True)
class StoreOwner:
    """Whose store it is; a store without this, or with another's, is never used."""

    cluster_id: str
    node_id: NodeId
    directory: str


class RaftStore:
    """The layout above on a `Store`. One caller at a time, but for `stage`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last = 0
        """Where the stored entries end, so that a tail is removed only where there is one."""
        self._pieces_of: int | None = None
        """The index of the snapshot that counts."""

    # -- at the start -----------------------------------------------------------------------------

    def format(self, owner: StoreOwner, founders: Mapping[tuple[NodeId, str], Address]) -> None:
        """Begin anew, with the founders as the first voters; none of them if the node joins."""
        voters = tuple(sorted(Member(node, DirectoryId(name)) for node, name in founders))
        puts = [(OWNER, json.dumps([owner.cluster_id, owner.node_id, owner.directory]).encode())]
        puts += self._header(Snapshot(conf=ConfState(voters)))
        puts += [_address_row(node, address) for (node, _), address in founders.items()]
        self._store.write(puts=puts, ranges=[(b"", LAST_KEY)], sync=True)

    def load(self, owner: StoreOwner) -> Stored:
        """What the member knew when it stopped; refuses a store that is not its own."""
        self._check_owner(owner)
        snapshot = self._load_snapshot()
        entries = tuple(
            _entry(key, value)
            for key, value in self._store.scan(_entry_key(snapshot.index + 1), LAST_ENTRY)
        )
        self._last = entries[-1].index if entries else snapshot.index
        hard_state = self._store.get(HARD_STATE)
        return Stored(
            HardState() if hard_state is None else _hard_state(hard_state), snapshot, entries
        )

    def addresses(self) -> dict[NodeId, Address]:
        found = {}
        for key, value in self._store.scan(FIRST_ADDRESS, LAST_ADDRESS):
            host, port = json.loads(value)
            found[NodeId(_NODE.unpack(key)[1])] = Address(host, port)
        return found

    def close(self) -> None:
        self._store.close()

    def _check_owner(self, owner: StoreOwner) -> None:
        value = self._store.get(OWNER)
        if value is None:
            raise NotFormatted("the quorum's log is missing or was never formatted")
        found = StoreOwner(*json.loads(value))
        if found.cluster_id != owner.cluster_id:
            raise ClusterIdMismatch(
                f"the quorum's log belongs to cluster {found.cluster_id}, not {owner.cluster_id}"
            )
        if found != owner:
            raise InvalidConfig(
                f"the quorum's log belongs to node {found.node_id} with directory id "
                f"{found.directory}, not to node {owner.node_id} with {owner.directory}"
            )

    def _load_snapshot(self) -> Snapshot:
        header = self._store.get(SNAPSHOT)
        if header is None:
            raise StorageFailed("the quorum's log has no snapshot, not even the first one")
        index, term, size, checksum = _HEADER.unpack_from(header)
        conf = ConfState.decode(header[_HEADER.size :])
        pieces = self._store.scan(_piece_key(index, 0), _piece_key(index + 1, 0))
        data = b"".join(piece for _, piece in pieces)
        if len(data) != size or zlib.crc32(data) != checksum:
            raise StorageFailed(f"the snapshot at {index} is damaged")
        self._pieces_of = index
        strays = [(FIRST_PIECE, _piece_key(index, 0)), (_piece_key(index + 1, 0), LAST_PIECE)]
        if any(next(self._store.scan(*stray), None) for stray in strays):
            self._store.write(ranges=strays, sync=False)
        return Snapshot(index, term, conf, data)

    # -- while it runs ----------------------------------------------------------------------------

    def write(
        self,
        snapshot: Snapshot | None,
        entries: Sequence[Entry],
        hard_state: HardState | None,
        *,
        sync: bool,
    ) -> None:
        """A Ready: the snapshot replaces everything, the entries all from their first index on."""
        puts: list[tuple[bytes, bytes]] = []
        ranges: list[tuple[bytes, bytes]] = []
        if snapshot is not None:
            ranges += [(FIRST_ENTRY, LAST_ENTRY), (FIRST_PIECE, LAST_PIECE)]
            puts += self._header(snapshot) + _pieces(snapshot)
            self._last = self._pieces_of = snapshot.index
        if entries:
            if entries[0].index <= self._last:
                ranges.append((_entry_key(entries[0].index), LAST_ENTRY))
            puts += [_entry_row(entry) for entry in entries]
            self._last = entries[-1].index
        if hard_state is not None:
            puts.append((HARD_STATE, _hard_state_row(hard_state)))
        self._store.write(puts=puts, ranges=ranges, sync=sync)

    def stage(self, snapshot: Snapshot) -> None:
        """Store the pieces of a snapshot that does not count yet; may run beside `write`."""
        stale = (_piece_key(snapshot.index, 0), _piece_key(snapshot.index + 1, 0))
        self._store.write(ranges=[stale], sync=False)
        for row in _pieces(snapshot):
            self._store.write(puts=[row], sync=True)

    def compact(self, snapshot: Snapshot) -> None:
        """A staged snapshot counts from now on, and the entries before it are gone."""
        assert self._pieces_of is not None
        assert self._pieces_of < snapshot.index, "an older snapshot after a newer one"
        ranges = [
            (FIRST_ENTRY, _entry_key(snapshot.index + 1)),
            (FIRST_PIECE, _piece_key(snapshot.index, 0)),
        ]
        self._store.write(puts=self._header(snapshot), ranges=ranges, sync=True)
        self._pieces_of = snapshot.index

    def save_addresses(self, addresses: Mapping[NodeId, Address]) -> None:
        """At leisure: they are learnt again if they are lost."""
        self._store.write(puts=[_address_row(*row) for row in addresses.items()], sync=False)

    @staticmethod
    def _header(snapshot: Snapshot) -> list[tuple[bytes, bytes]]:
        data = snapshot.data
        header = _HEADER.pack(snapshot.index, snapshot.term, len(data), zlib.crc32(data))
        return [(SNAPSHOT, header + snapshot.conf.encode())]


def _entry_key(index: int) -> bytes:
    return _INDEX.pack(FIRST_ENTRY, index)


def _piece_key(index: int, number: int) -> bytes:
    return _PIECE.pack(FIRST_PIECE, index, number)


def _pieces(snapshot: Snapshot) -> list[tuple[bytes, bytes]]:
    data = snapshot.data
    return [
        (_piece_key(snapshot.index, number), data[start : start + PIECE_BYTES])
        for number, start in enumerate(range(0, len(data), PIECE_BYTES))
    ]


def _entry_row(entry: Entry) -> tuple[bytes, bytes]:
    return _entry_key(entry.index), _ENTRY.pack(entry.term, entry.kind) + entry.data


def _entry(key: bytes, value: bytes) -> Entry:
    term, kind = _ENTRY.unpack_from(value)
    return Entry(_INDEX.unpack(key)[1], term, EntryKind(kind), value[_ENTRY.size :])


def _hard_state_row(state: HardState) -> bytes:
    node, name = (0, "") if state.vote is None else state.vote
    packed = _HARD_STATE.pack(state.term, state.commit, state.vote is not None, node)
    return packed + name.encode()


def _hard_state(value: bytes) -> HardState:
    term, commit, has_vote, node = _HARD_STATE.unpack_from(value)
    name = value[_HARD_STATE.size :].decode()
    vote = Member(NodeId(node), DirectoryId(name)) if has_vote else None
    return HardState(term, vote, commit)


def _address_row(node_id: NodeId, address: Address) -> tuple[bytes, bytes]:
    value = json.dumps([address.host, address.port]).encode()
    return _NODE.pack(FIRST_ADDRESS, node_id), value
