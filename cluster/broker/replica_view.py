"""What is on this broker's disks: sizes and positions of its replicas, by log directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suiro._proto import broker_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from cluster.broker.partition import Partition


def describe_replicas(
    partitions: Iterable[Partition], topics: Collection[str]
) -> pb.DescribeReplicasReply:
    """Those of `topics`, or all if none is named."""
    by_path: dict[str, pb.LogDirectory] = {}
    for partition in sorted(partitions, key=lambda p: p.partition):
        if topics and partition.partition.topic not in topics:
            continue
        path = str(partition.log.home.root)
        directory = by_path.setdefault(path, pb.LogDirectory(path=path))
        directory.replicas.append(_describe(partition))
    return pb.DescribeReplicasReply(directories=by_path.values())


def _describe(partition: Partition) -> pb.ReplicaInfo:
    log = partition.log
    return pb.ReplicaInfo(
        topic=partition.partition.topic,
        partition=partition.partition.partition,
        size_bytes=log.size_bytes,
        log_start=log.log_start,
        last_stable_offset=log.last_stable_offset(partition.high_watermark),
        high_watermark=partition.high_watermark,
        log_end=log.log_end,
        leader_epoch=partition.state.leader_epoch,
        leads=partition.leads,
        segments=log.segment_count,
    )
