"""WriteTxnMarkers: the transaction coordinator ends a transaction in partitions of this broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from suiro._proto import broker_pb2 as pb
from suiro.model.control import ControlType, Marker, encode_marker
from suiro.model.error_base import SuiroError
from suiro.model.ids import (
    ProducerEpoch,
    ProducerId,
    ProducerIdentity,
    TopicPartition,
)
from suiro.model.records import ShardKind
from suiro.transport.wire_errors import error_to_proto

if TYPE_CHECKING:
    from suiro._proto.common_pb2 import TopicPartition as WirePartition
    from suiro.model.ids import LeaderEpoch, Offset
    from suiro.transport.api import Peer

    from cluster.broker.partition import Partition
    from cluster.broker.replicas import Replicas
    from cluster.host.clock import Clock

COMMIT_TIMEOUT_S = 10.0


class _Appended(NamedTuple):
    partition: Partition
    end: Offset
    leader_epoch: LeaderEpoch


class MarkerHandler:
    """A marker is answered once it is committed; one that is there already, at once. Which
    markers come late, the log itself can tell (`log/producers.py`).
    """

    def __init__(self, replicas: Replicas, clock: Clock) -> None:
        self._replicas = replicas
        self._clock = clock

    async def write_markers(
        self, request: pb.WriteTxnMarkersRequest, _peer: Peer
    ) -> pb.WriteTxnMarkersReply:
        outcomes = [
            (marker, where, self._append(marker, where))
            for marker in request.markers
            for where in marker.partitions
        ]
        results = []
        for marker, where, outcome in outcomes:
            result = pb.MarkerResult(partition=where, producer_id=marker.producer_id)
            try:
                if isinstance(outcome, SuiroError):
                    raise outcome
                await outcome.partition.wait_committed(
                    outcome.end, outcome.leader_epoch, COMMIT_TIMEOUT_S
                )
            except SuiroError as error:
                result.error.CopyFrom(error_to_proto(error))
            results.append(result)
        return pb.WriteTxnMarkersReply(results=results)

    def _append(self, marker: pb.TxnMarker, where: WirePartition) -> _Appended | SuiroError:
        kind = ControlType.COMMIT if marker.commit else ControlType.ABORT
        producer = ProducerIdentity(
            ProducerId(marker.producer_id), ProducerEpoch(marker.producer_epoch)
        )
        try:
            self._replicas.check_owner(ShardKind.TXN, marker.shard, marker.owner_epoch)
            partition = self._replicas.get(TopicPartition(where.topic, where.partition))
            batch = encode_marker(Marker(kind, marker.owner_epoch), producer, self._clock.now_ms())
            info = partition.append_marker(batch)
        except SuiroError as error:
            return error
        return _Appended(partition, info.end, partition.state.leader_epoch)
