"""Messages that carry batches: protobuf on the wire, without protobuf's copies.

Such a message has its batches in field 15, the last one. To send, the other fields are serialised
as usual and the batches are joined on behind a hand-written tag. To receive, the top-level fields
are walked until the tag is found and the batches become a view of the received bytes. Any protobuf
implementation can read and write the same message; only the copies differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from google.protobuf.message import DecodeError

from suiro.model.errors import InvalidRequest
from suiro.transport.api import Codec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.protobuf.message import Message

    from suiro.model.batch import Buffer

H = TypeVar("H", bound="Message")

PAYLOAD_FIELD: Final = 15
_PAYLOAD_TAG: Final = PAYLOAD_FIELD << 3 | 2
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5


@dataclass(frozen=True, slots=True)
class Framed(Generic[H]):
    """A message and its batches; `header`'s own payload field is empty."""

    header: H
    payload: Sequence[Buffer] = ()

    @property
    def body(self) -> Buffer:
        """The whole payload; of a received message one view of the bytes that arrived."""
        return self.payload[0] if len(self.payload) == 1 else b"".join(self.payload)


def framed_codec(message: type[H]) -> Codec[Framed[H]]:
    """The codec of a message type whose field 15 is its batches."""

    def encode(framed: Framed[H]) -> bytes:
        size = sum(map(len, framed.payload))
        if not size:
            return framed.header.SerializeToString()
        tag = bytes((_PAYLOAD_TAG, *_varint(size)))
        return b"".join((framed.header.SerializeToString(), tag, *framed.payload))

    def decode(data: bytes) -> Framed[H]:
        try:
            start, end = _find_payload(data)
        except IndexError:
            raise InvalidRequest(f"{message.__name__}: the message is cut short") from None
        if start == end:
            return Framed(parse(message, data))
        view = memoryview(data)
        head_end = start - 1 - len(_varint(end - start))
        header = parse(message, view[:head_end].tobytes() + view[end:].tobytes())
        return Framed(header, (view[start:end],))

    return Codec(encode, decode)


def message_codec(message: type[H]) -> Codec[H]:
    """The codec of an ordinary message."""

    def encode(value: H) -> bytes:
        return value.SerializeToString()

    def decode(data: bytes) -> H:
        return parse(message, data)

    return Codec(encode, decode)


def parse(message: type[H], data: bytes) -> H:
    """Parse a message; bytes that are not one are the sender's fault, not ours."""
    parsed: Any = message()
    try:
        parsed.ParseFromString(data)
    except DecodeError as error:
        raise InvalidRequest(f"these bytes are not a {message.__name__}: {error}") from None
    return parsed  # type: ignore[no-any-return]


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _find_payload(data: bytes) -> tuple[int, int]:
    """Where field 15 begins and ends; (0, 0) if it is absent. IndexError if the message is cut."""
    position, end = 0, len(data)
    while position < end:
        tag, position = _read_varint(data, position)
        wire_type = tag & 7
        if wire_type == _LENGTH:
            size, position = _read_varint(data, position)
            if position + size > end:
                raise IndexError
            if tag == _PAYLOAD_TAG:
                return position, position + size
            position += size
        elif wire_type == _VARINT:
            _, position = _read_varint(data, position)
        elif wire_type == _FIXED64:
            position += 8
        elif wire_type == _FIXED32:
            position += 4
        else:
            raise IndexError
    return 0, 0


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    byte = data[position]
    if byte < 0x80:
        return byte, position + 1
    value, shift = byte & 0x7F, 7
    while byte >= 0x80:
        position += 1
        byte = data[position]
        value |= (byte & 0x7F) << shift
        shift += 7
        if shift > 70:
            raise IndexError
    return value, position + 1
