"""Control batches: the marker that ends a transaction in one partition.

One record with Kafka's key (version, type) and value (version, coordinator epoch), under the
control and transactional bits and the producer whose transaction ends. Readers never see it: the
broker leaves it out of what it serves.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from suiro.model.batch import HEADER_BYTES, check_crc, read_header
from suiro.model.columns import decode
from suiro.model.encode import BatchOptions, encode_lists
from suiro.model.errors import CorruptBatch
from suiro.model.ids import ProducerEpoch, ProducerId, ProducerIdentity

if TYPE_CHECKING:
    from suiro.model.batch import Buffer

CONTROL_VERSION: Final = 0
_KEY: Final = struct.Struct(">hh")
_VALUE: Final = struct.Struct(">hi")


class ControlType(IntEnum):
    """How a transaction ended; the numbers are Kafka's."""

    ABORT = 0
    COMMIT = 1


@dataclass(frozen=True, slots=True)
class Marker:
    """The end of one producer's transaction; a marker of an older coordinator epoch is refused."""

    kind: ControlType
    coordinator_epoch: int


def encode_marker(marker: Marker, producer: ProducerIdentity, timestamp_ms: int) -> bytearray:
    """The control batch of this marker."""
    options = BatchOptions(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        transactional=True,
        control=True,
    )
    key = _KEY.pack(CONTROL_VERSION, marker.kind)
    value = _VALUE.pack(CONTROL_VERSION, marker.coordinator_epoch)
    return encode_lists([key], [value], timestamps_ms=timestamp_ms, options=options)


def decode_marker(data: Buffer, position: int = 0, *, verify_crc: bool = True) -> Marker:
    """The marker of the control batch at `position`. A later version may have added fields."""
    header = read_header(data, position)
    body = memoryview(data)[position + HEADER_BYTES : position + header.size]
    if header.is_control and body[: len(_PLAIN)] == _PLAIN and len(body) == _PLAIN_BYTES:
        if verify_crc:
            check_crc(data, header, position)
        return _marker(body[len(_PLAIN) : -_VALUE.size], body[-_VALUE.size :])
    columns = decode(data, position, verify_crc=verify_crc)
    header = columns.header
    if not header.is_control or header.record_count != 1:
        raise CorruptBatch(f"{header.record_count} records are not one control record")
    key, value = columns.keys_list()[0], columns.values_list()[0]
    if key is None or value is None or len(key) < _KEY.size or len(value) < _VALUE.size:
        raise CorruptBatch("the control record is too short")
    return _marker(key, value)


def _marker(key: Buffer, value: Buffer) -> Marker:
    _, kind = _KEY.unpack_from(key)
    _, coordinator_epoch = _VALUE.unpack_from(value)
    if kind not in (ControlType.ABORT, ControlType.COMMIT):
        raise CorruptBatch(f"unknown control type {kind}")
    return Marker(ControlType(kind), coordinator_epoch)


def _plain() -> bytes:
    """What stands before the key and the value of a control batch as we write them, so that
    reading one needs no columns.
    """
    batch = encode_marker(
        Marker(ControlType.COMMIT, 0), ProducerIdentity(ProducerId(0), ProducerEpoch(0)), 0
    )
    return bytes(batch[HEADER_BYTES : -(_KEY.size + _VALUE.size)])


_PLAIN: Final = _plain()
_PLAIN_BYTES: Final = len(_PLAIN) + _KEY.size + _VALUE.size
