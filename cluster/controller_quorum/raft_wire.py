"""Messages of the core to and from the wire.

A stream has one sender and one receiver, settled when it begins; so source and target are not
written into the messages, and nobody can speak in another's name.
"""

from __future__ import annotations

from suiro._proto.raft_pb2 import RaftEntry, RaftMessage, RaftSnapshotChunk
from suiro.model.errors import InvalidRequest

from cluster.controller_quorum.conf import ConfState, Member
from cluster.controller_quorum.messages import (
    Entry,
    EntryKind,
    Message,
    MessageKind,
    SnapshotChunk,
)


def message_to_wire(message: Message) -> RaftMessage:
    return RaftMessage(
        kind=message.kind,
        term=message.term,
        index=message.index,
        log_term=message.log_term,
        commit=message.commit,
        reject=message.reject,
        hint=message.hint,
        read_sequence=message.read_sequence,
        context=message.context,
        transfer=message.transfer,
        entries=[RaftEntry(term=e.term, kind=e.kind, data=e.data) for e in message.entries],
        snapshot=None if message.snapshot is None else _chunk_to_wire(message.snapshot),
    )


def message_from_wire(message: RaftMessage, source: Member, target: Member) -> Message:
    try:
        kind = MessageKind(message.kind)
        entries = tuple(
            Entry(message.index + 1 + place, entry.term, EntryKind(entry.kind), entry.data)
            for place, entry in enumerate(message.entries)
        )
    except ValueError as error:
        raise InvalidRequest(f"a message of the quorum that is unknown here: {error}") from None
    return Message(
        kind,
        source,
        target,
        message.term,
        message.index,
        message.log_term,
        entries,
        message.commit,
        message.reject,
        message.hint,
        message.read_sequence,
        message.context,
        message.transfer,
        _chunk_from_wire(message.snapshot) if message.HasField("snapshot") else None,
    )


def _chunk_to_wire(chunk: SnapshotChunk) -> RaftSnapshotChunk:
    return RaftSnapshotChunk(
        index=chunk.index,
        term=chunk.term,
        membership=chunk.conf.encode(),
        offset=chunk.offset,
        bytes_total=chunk.bytes_total,
        data=chunk.data,
    )


def _chunk_from_wire(chunk: RaftSnapshotChunk) -> SnapshotChunk:
    return SnapshotChunk(
        chunk.index,
        chunk.term,
        ConfState.decode(chunk.membership),
        chunk.offset,
        chunk.data,
        chunk.bytes_total,
    )
