"""A framed message is protobuf on the wire, whoever wrote it, and bad bytes are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from suiro._proto import broker_pb2 as pb
from suiro.model.errors import InvalidRequest
from suiro.transport.framing import Framed, framed_codec

CODEC = framed_codec(pb.ProduceRequest)


@given(st.lists(st.binary(max_size=300), max_size=4), st.integers(-1, 1), st.text(max_size=20))
def test_any_protobuf_reader_understands_it(parts: list[bytes], acks: int, name: str) -> None:
    header = pb.ProduceRequest(acks=acks, parts=[pb.ProducePart(topic=name, size=7)])
    wire = CODEC.encode(Framed(header, parts))
    parsed = pb.ProduceRequest.FromString(wire)
    assert parsed.batches == b"".join(parts)
    assert parsed.parts == header.parts
    ours = CODEC.decode(wire)
    assert bytes(ours.body) == b"".join(parts)
    assert ours.header == header


def test_the_payload_may_stand_anywhere() -> None:
    """Protobuf does not promise an order of fields."""
    payload = pb.ProduceRequest(batches=b"payload").SerializeToString()
    rest = pb.ProduceRequest(acks=1, transactional_id="late").SerializeToString()
    decoded = CODEC.decode(payload + rest)
    assert bytes(decoded.body) == b"payload"
    assert (decoded.header.acks, decoded.header.transactional_id) == (1, "late")


@given(st.binary(max_size=60))
def test_garbage_is_an_invalid_request_or_a_message(data: bytes) -> None:
    try:
        decoded = CODEC.decode(data)
    except InvalidRequest:
        return
    assert isinstance(decoded.header, pb.ProduceRequest)


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_cut_message_is_refused_or_shorter(cut: int) -> None:
    wire = CODEC.encode(Framed(pb.ProduceRequest(acks=1), [b"0123456789"]))
    with pytest.raises(InvalidRequest):
        CODEC.decode(wire[:-cut])
