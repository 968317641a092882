"""Records to bytes and back, and what a rebuilt machine knows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from suiro.model.errors import CorruptBatch, UnsupportedVersion
from suiro.model.ids import ProducerEpoch, ProducerId, ProducerIdentity, TopicPartition

from cluster.txncoord.codec import decode, encode
from cluster.txncoord.records import TxnChanged, TxnForgotten
from cluster.txncoord.txn import NOBODY, Ended, EndedBy, Token, Txn, TxnState, Writer

identities = st.just(NOBODY) | st.builds(
    ProducerIdentity,
    st.integers(0, 2**40).map(ProducerId),
    st.integers(0, 32767).map(ProducerEpoch),
)
times = st.integers(-1, 2**50)
partitions = st.builds(TopicPartition, st.text(max_size=5), st.integers(0, 99))
writers = st.builds(
    Writer,
    identity=identities,
    partitions=st.lists(partitions, max_size=3).map(tuple),
    groups=st.lists(st.text(max_size=4), max_size=2).map(tuple),
    name=st.text(max_size=4),
    prepared=st.booleans(),
    commits=st.booleans(),
)
txns = st.builds(
    Txn,
    transactional_id=st.text(max_size=8),
    state=st.sampled_from(TxnState),
    changed_ms=times,
    timeout_ms=st.integers(0, 2**31),
    identity=identities,
    holder=identities,
    came_from=identities,
    client=st.text(max_size=4),
    fenced_by=st.text(max_size=4),
    fenced_ms=times,
    opened_ms=times,
    renewed_ms=times,
    writers=st.lists(writers, max_size=3).map(tuple),
    ended=st.none()
    | st.builds(
        Ended, identities, identities, st.booleans(), st.sampled_from(EndedBy), st.text(), times
    ),
    token=st.none() | st.builds(Token, st.integers(0, 2**40), st.text(max_size=5)),
    committed_sequence=times,
    over=st.lists(st.text(max_size=3), max_size=3).map(tuple),
)


@given(txns)
def test_a_record_survives(txn: Txn) -> None:
    key, value = encode(TxnChanged(txn))
    assert decode(key, value) == TxnChanged(txn)
    assert encode(TxnForgotten(txn.transactional_id)) == (key, None)
    assert decode(key, None) == TxnForgotten(txn.transactional_id)


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(UnsupportedVersion):
        decode(b"\x02id", b"")
    with pytest.raises(UnsupportedVersion):
        decode(b"", None)
    with pytest.raises(UnsupportedVersion):
        decode(b"\x01id", b"")  # a value without a state
    with pytest.raises(CorruptBatch):
        decode(b"\x01id", b"\xff\xff")
    with pytest.raises(CorruptBatch):
        decode(b"\x01\xff", None)
