"""Who belongs to the quorum, and how that changes by one member at a time.

A member is a node id *and* the id of the directory it writes to: a node that lost its disk comes
back as another member and inherits neither vote nor place (M7). A configuration entry carries the
whole configuration that holds from it on, so the configuration at any index is the last such entry
at or before it, and taking an entry back takes its change back.

Invariant: a node id appears at most once, voters and learners taken together.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, NewType

from suiro.model.errors import InvalidRequest
from suiro.model.ids import NodeId

DirectoryId = NewType("DirectoryId", str)

_COUNTS = struct.Struct(">HH")
_MEMBER = struct.Struct(">qB")


class Member(NamedTuple):
    """One identity of one node; a named tuple because every message compares two of them."""

    node: NodeId
    directory: DirectoryId

    def __str__(self) -> str:
        return f"{self.node}/{self.directory}"


class ConfChangeKind(IntEnum):
    """What may happen to the quorum. A voter joins as a learner first, so that it never slows a
    majority down while it catches up.
    """

    ADD_LEARNER = 1
    PROMOTE = 2
    REMOVE = 3


@dataclass(frozen=True, slots=True)
class ConfChange:
    """One step from a configuration to the next; any two neighbours share a majority."""

    kind: ConfChangeKind
    member: Member


@dataclass(frozen=True, slots=True)
class ConfState:
    """The members, each kind in ascending order."""

    voters: tuple[Member, ...] = ()
    learners: tuple[Member, ...] = ()

    def __post_init__(self) -> None:
        nodes = [member.node for member in self.members]
        assert len(nodes) == len(set(nodes)), f"a node id stands twice in {self}"

    @property
    def members(self) -> tuple[Member, ...]:
        return self.voters + self.learners

    def changed(self, change: ConfChange) -> ConfState:
        """The next configuration; InvalidRequest where the change makes no sense here."""
        member = change.member
        match change.kind:
            case ConfChangeKind.ADD_LEARNER:
                if any(known.node == member.node for known in self.members):
                    raise InvalidRequest(f"node {member.node} is in the quorum; remove it first")
                return ConfState(self.voters, tuple(sorted((*self.learners, member))))
            case ConfChangeKind.PROMOTE:
                if member not in self.learners:
                    raise InvalidRequest(f"{member} is no learner of the quorum")
                return ConfState(
                    tuple(sorted((*self.voters, member))), _without(self.learners, member)
                )
            case ConfChangeKind.REMOVE:
                if member not in self.members:
                    raise InvalidRequest(f"{member} is no member of the quorum")
                if self.voters == (member,):
                    raise InvalidRequest(f"{member} is the last voter")
                return ConfState(_without(self.voters, member), _without(self.learners, member))

    def encode(self) -> bytes:
        parts = [_COUNTS.pack(len(self.voters), len(self.learners))]
        for member in self.members:
            name = member.directory.encode()
            parts += (_MEMBER.pack(member.node, len(name)), name)
        return b"".join(parts)

    @classmethod
    def decode(cls, data: bytes) -> ConfState:
        voters, learners = _COUNTS.unpack_from(data)
        position = _COUNTS.size
        members = []
        for _ in range(voters + learners):
            node, length = _MEMBER.unpack_from(data, position)
            position += _MEMBER.size
            name = data[position : position + length].decode()
            members.append(Member(NodeId(node), DirectoryId(name)))
            position += length
        assert position == len(data), "a configuration entry with bytes left over"
        return cls(tuple(members[:voters]), tuple(members[voters:]))


NOBODY = ConfState()
"""What a node that was not formatted as a founder starts with: it may follow, never vote alone."""


def _without(members: tuple[Member, ...], leaving: Member) -> tuple[Member, ...]:
    return tuple(member for member in members if member != leaving)
