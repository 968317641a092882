"""A user's own way to share partitions out: a function that a member of the group runs.

```python
def by_hand(group: GroupToAssign) -> dict[str, list[TopicPartition]]:
    first, *_ = group.members
    return {first.member_id: list(group.partitions)}

Consumer(group_id="billing", assignors=(by_hand, "cooperative-sticky"))
```

It is known in the group by the function's name, so all members must have it under the same one. It
must give each partition to one member that wants its topic. Members may be asked at different times
with different groups, so it should depend on nothing but its argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suiro.model.ids import TopicPartition

if TYPE_CHECKING:
    from suiro._proto import groupcoord_pb2 as pb
    from suiro._proto.common_pb2 import TopicPartition as WirePartition


@dataclass(frozen=True, slots=True)
class MemberToAssign:
    """One member: what it wants, what it has, where it is."""

    member_id: str
    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...]
    rack: str


@dataclass(frozen=True, slots=True)
class GroupToAssign:
    """Everything that there is to share out, and among whom."""

    members: tuple[MemberToAssign, ...]
    partitions: tuple[TopicPartition, ...]


Assignor = Callable[[GroupToAssign], Mapping[str, Iterable[TopicPartition]]]


def name_of(assignor: str | Assignor) -> str:
    """The name under which a group knows it."""
    return assignor if isinstance(assignor, str) else assignor.__name__


def group_to_assign(request: pb.ComputeAssignment) -> GroupToAssign:
    members = tuple(
        MemberToAssign(view.member_id, tuple(view.topics), _partitions(view.owned), view.rack)
        for view in request.members
    )
    return GroupToAssign(members, _partitions(request.partitions))


def _partitions(wire: Iterable[WirePartition]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(p.topic, p.partition) for p in wire)
