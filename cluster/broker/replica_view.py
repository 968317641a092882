"""What is on this broker's disks: sizes and positions of its replicas, by log directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suiro._proto import broker_pb2 as pb
from suiro.model.errors import StorageFailed
from suiro.transport.wire_errors import error_to_proto

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from suiro.model.ids import TopicPartition

    from cluster.broker.log_directory import LogDirectory
    from cluster.broker.partition import Partition
    from cluster.broker.replica_moves import Move


def describe_replicas(
    directories: Iterable[LogDirectory],
    partitions: Iterable[Partition],
    topics: Collection[str],
    moves: Mapping[TopicPartition, Move],
) -> pb.DescribeReplicasReply:
    """Those of `topics`, or all if none is named."""
    by_path = {str(directory.path): _directory(directory) for directory in directories}
    for partition in sorted(partitions, key=lambda p: p.partition):
        if topics and partition.partition.topic not in topics:
            continue
        described = _describe(partition)
        move = moves.get(partition.partition)
        if move is not None:
            described.moving_to, described.moved_bytes = str(move.to.path), move.moved_bytes
        by_path[str(partition.log.home.root)].replicas.append(described)
    return pb.DescribeReplicasReply(directories=by_path.values())


def _directory(directory: LogDirectory) -> pb.LogDirectory:
    described = pb.LogDirectory(path=str(directory.path), free_bytes=directory.free_bytes())
    if directory.failure is not None:
        described.error.CopyFrom(error_to_proto(StorageFailed(directory.failure)))
    return described


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
