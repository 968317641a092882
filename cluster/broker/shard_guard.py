"""Who may write to an internal topic: the owner of the shard alone, and only where the log ends.

A broker takes a write under exactly the owner epoch that its image shows. An older one is a deposed
owner's; a newer one waits until the image knows it. So once a new owner's first write is in
the log, every present and later leader of the partition knows of that owner: it was elected by
metadata at least as new as those under which the write was taken. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from suiro.model.errors import InvalidRequest, InvalidTopic, StaleOwnerEpoch, Unavailable
from suiro.model.topics import SHARD_KINDS

if TYPE_CHECKING:
    from suiro.model.ids import Offset, TopicPartition
    from suiro.model.image import ClusterImage
    from suiro.model.records import ShardKind

NOT_AN_OWNER = 0


def check_writer(
    image: ClusterImage | None,
    partition: TopicPartition,
    owner_epoch: int,
    append_at: int,
    log_end: Offset,
) -> None:
    """Raise unless this write may be appended."""
    kind = SHARD_KINDS.get(partition.topic)
    if kind is None:
        if owner_epoch != NOT_AN_OWNER or append_at:
            raise InvalidRequest(f"{partition} has no owner: leave owner_epoch and append_at out")
        return
    if owner_epoch == NOT_AN_OWNER:
        raise InvalidTopic(f"{partition.topic} is written by its coordinators alone")
    check_owner(image, kind, partition.partition, owner_epoch)
    if append_at and append_at != log_end:
        raise StaleOwnerEpoch(
            f"{partition}: the log ends at {log_end}, not at {append_at}: it was written meanwhile"
        )


def check_owner(image: ClusterImage | None, kind: ShardKind, shard: int, owner_epoch: int) -> None:
    """Raise unless this is the epoch under which the shard is owned, as far as the image knows."""
    state = None if image is None else image.shard(kind, shard)
    known = NOT_AN_OWNER if state is None else state.owner_epoch
    if owner_epoch < known:
        raise StaleOwnerEpoch(
            f"{kind} shard {shard}: owner epoch {owner_epoch} has ended, now it is {known}"
        )
    if owner_epoch > known:
        raise Unavailable(f"{kind} shard {shard}: owner epoch {owner_epoch} is not known here yet")
