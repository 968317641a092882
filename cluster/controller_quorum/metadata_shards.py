"""Which coordinator owns which shard: spread evenly, moved as little as possible.

A shard changes hands only with a higher owner epoch, so whoever owned it before can write nothing
more. A coordinator that goes loses its shards in the same decision that fences it, also if nobody
else is there to take them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from suiro.model.ids import NO_OWNER, NodeId, OwnerEpoch
from suiro.model.records import Role, ShardKind, ShardOwned
from suiro.model.topics import SHARD_TOPICS

from cluster.host.machine import Decision

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suiro.model.image import ClusterImage


def assign_shards(image: ClusterImage, kind: ShardKind) -> Decision[int]:
    records = respread(image, kind, coordinators(image, kind), shard_count(image, kind))
    return Decision(records, len(records))


def shards_without(image: ClusterImage, node_id: NodeId) -> tuple[ShardOwned, ...]:
    """The shards of a node that is going, given to the others, or to nobody."""
    records: list[ShardOwned] = []
    for kind in sorted({owned.kind for owned in shards_of(image, node_id)}):
        others = [n for n in coordinators(image, kind) if n != node_id]
        records += respread(image, kind, others, shard_count(image, kind))
    return tuple(records)


def shards_of(image: ClusterImage, node_id: NodeId) -> list[ShardOwned]:
    return [owned for owned in image.shards.values() if owned.owner == node_id]


def shards_with(image: ClusterImage, node_id: NodeId) -> tuple[ShardOwned, ...]:
    """What moves when a node begins to serve."""
    records: list[ShardOwned] = []
    for kind in ShardKind:
        if Role(kind.value) in image.nodes[node_id].registration.roles:
            owners = sorted({*coordinators(image, kind), node_id})
            records += respread(image, kind, owners, shard_count(image, kind))
    return tuple(records)


def coordinators(image: ClusterImage, kind: ShardKind) -> list[NodeId]:
    return [node.id for node in image.available(Role(kind.value))]


def shard_count(image: ClusterImage, kind: ShardKind) -> int:
    topic = image.topic(SHARD_TOPICS[kind])
    return 0 if topic is None else len(topic.partitions)


def respread(
    image: ClusterImage, kind: ShardKind, owners: Sequence[NodeId], count: int
) -> tuple[ShardOwned, ...]:
    """The records that leave every shard with one of `owners`, none more than one above another."""
    held: dict[NodeId, list[int]] = {owner: [] for owner in owners}
    free: list[int] = []
    for shard in range(count):
        owned = image.shard(kind, shard)
        (held[owned.owner] if owned is not None and owned.owner in held else free).append(shard)
    if not held:
        return tuple(
            _owned(image, kind, shard, NO_OWNER) for shard in free if _is_owned(image, kind, shard)
        )
    moved: dict[int, NodeId] = {}
    for shard in free:
        least = min(held, key=lambda owner: (len(held[owner]), owner))
        held[least].append(shard)
        moved[shard] = least
    while True:
        least = min(held, key=lambda owner: (len(held[owner]), owner))
        most = max(held, key=lambda owner: (len(held[owner]), owner))
        if len(held[most]) - len(held[least]) <= 1:
            break
        shard = held[most].pop()
        held[least].append(shard)
        moved[shard] = least
    return tuple(_owned(image, kind, shard, moved[shard]) for shard in sorted(moved))


def _is_owned(image: ClusterImage, kind: ShardKind, shard: int) -> bool:
    owned = image.shard(kind, shard)
    return owned is not None and owned.owner != NO_OWNER


def _owned(image: ClusterImage, kind: ShardKind, shard: int, owner: NodeId) -> ShardOwned:
    former = image.shard(kind, shard)
    return ShardOwned(
        kind, shard, owner, OwnerEpoch(1 if former is None else former.owner_epoch + 1)
    )
