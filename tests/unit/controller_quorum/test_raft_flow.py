"""The log, the follower's progress, snapshots and the Ready: what keeps the stream going."""

from __future__ import annotations

from random import Random

import pytest
from suiro.model.errors import NotController, Overloaded

from cluster.controller_quorum.conf import ConfState
from cluster.controller_quorum.messages import (
    HardState,
    Message,
    MessageKind,
    Snapshot,
    SnapshotChunk,
    Stored,
)
from cluster.controller_quorum.progress import Progress, ProgressState
from cluster.controller_quorum.raft import Raft
from cluster.controller_quorum.raft_log import ENTRY_OVERHEAD_BYTES, RaftLog
from cluster.controller_quorum.raft_state import RaftConfig
from tests.unit.controller_quorum.raft_builders import (
    CONFIG,
    ONE,
    THREE,
    TRIO,
    TWO,
    ack,
    append,
    do,
    entries,
    leader,
    member,
    one_ready,
    terms_of,
)


def appends_to(sent: list[Message], target: object) -> list[Message]:
    return [m for m in sent if m.kind is MessageKind.APPEND and m.target == target]


# -- the log --------------------------------------------------------------------------------------


def test_what_is_committed_is_never_taken_back() -> None:
    log = RaftLog(Stored(HardState(2, None, 2), Snapshot(), entries(1, 1, 2)))
    with pytest.raises(AssertionError, match="truncation at 2"):
        log.accept(1, 1, entries(3, first=2))


def test_commit_never_passes_the_end() -> None:
    with pytest.raises(AssertionError, match="beyond the log's end"):
        RaftLog(Stored(HardState(1, None, 4), Snapshot(), entries(1, 1)))


def test_a_slice_is_bounded_by_bytes_and_has_at_least_one_entry() -> None:
    log = RaftLog(Stored(HardState(1), Snapshot(), entries(1, 1, 1, 1)))
    size = len(b"1.1") + ENTRY_OVERHEAD_BYTES
    assert [e.index for e in log.slice(2, 2 * size)] == [2, 3]
    assert [e.index for e in log.slice(2, 1)] == [2]


def test_a_write_that_was_overtaken_by_a_truncation_makes_nothing_stable() -> None:
    raft = member(1, term=1)
    raft.step(Message(MessageKind.APPEND, TWO, ONE, 1, 1, 1, entries(1, 1, first=2)))
    ready = raft.take_ready()
    raft.step(Message(MessageKind.APPEND, THREE, ONE, 2, 1, 1, entries(2, first=2)))
    raft.advance(ready)
    assert raft.log.stable == 1
    assert [entry.term for entry in one_ready(raft).entries] == [2]


def test_compaction_keeps_the_configuration_and_the_trailing_entries() -> None:
    log = RaftLog(Stored(HardState(1, None, 5), Snapshot(conf=TRIO), entries(1, 1, 1, 1, 1, 1)))
    log.hand_out()
    log.applied_to(5)
    snapshot = log.compact(4, b"state", 2)
    assert (snapshot.index, snapshot.term, snapshot.conf) == (4, 1, TRIO)
    assert (log.base, log.term(2), log.term(1)) == (2, 1, None)
    with pytest.raises(AssertionError, match="cannot compact"):
        log.compact(6, b"", 0)


def test_a_member_wakes_up_with_what_it_stored() -> None:
    stored = Stored(HardState(3, TWO, 6), Snapshot(4, 2, TRIO, b"s"), entries(2, 3, 3, first=5))
    raft = Raft(ONE, CONFIG, stored, Random(1))
    assert (raft.term, raft.vote, raft.conf, raft.log.commit) == (3, TWO, TRIO, 6)
    assert [entry.index for entry in one_ready(raft).committed] == [5, 6]


# -- progress -------------------------------------------------------------------------------------


def test_a_probe_waits_for_its_answer_and_a_stream_for_its_window() -> None:
    progress = Progress(TWO, 5, 2)
    assert progress.can_send()
    progress.on_sent(4, 0)
    assert not progress.can_send()
    progress.on_ack(4)
    assert progress.state is ProgressState.REPLICATE
    progress.on_sent(6, 0)
    progress.on_sent(8, 0)
    assert not progress.can_send()
    progress.on_ack(6)
    assert progress.can_send()
    assert (progress.match, progress.next) == (6, 9)


def test_an_old_refusal_is_ignored() -> None:
    progress = Progress(TWO, 5, 2)
    progress.on_ack(4)
    assert not progress.on_reject(3, 1)
    assert progress.state is ProgressState.REPLICATE
    assert progress.on_reject(6, 1)
    assert (progress.state, progress.next) == (ProgressState.PROBE, 5)
    assert not progress.on_reject(9, 1), "not the probe that is under way"


def test_a_quiet_follower_is_probed_again_after_two_heartbeats() -> None:
    raft = leader()
    ack(raft, TWO, 1)
    raft.propose([b"lost"])
    do(raft)
    beat = Message(MessageKind.HEARTBEAT_REPLY, TWO, ONE, raft.term)
    raft.step(beat)
    assert appends_to(do(raft), TWO) == []
    raft.step(beat)
    (again,) = appends_to(do(raft), TWO)
    assert [entry.index for entry in again.entries] == [2]


def test_appends_are_pipelined_up_to_the_window_in_bounded_messages() -> None:
    config = RaftConfig(append_bytes_max=1, appends_in_flight_max=3)
    raft = leader(config=config)
    ack(raft, TWO, 1)
    raft.propose([b"a", b"b", b"c", b"d", b"e"])
    sent = appends_to(do(raft), TWO)
    assert [[e.index for e in m.entries] for m in sent] == [[2], [3], [4]]
    sent = appends_to(ack(raft, TWO, 3), TWO)
    assert [[e.index for e in m.entries] for m in sent if m.entries] == [[5], [6]]


# -- snapshots ------------------------------------------------------------------------------------


def chunk(offset: int, data: bytes, total: int, index: int = 5, term: int = 1) -> SnapshotChunk:
    return SnapshotChunk(index, term, TRIO, offset, data, total)


def send_chunk(raft: Raft, piece: SnapshotChunk, term: int = 2) -> list[Message]:
    raft.step(Message(MessageKind.SNAPSHOT, TWO, raft.me, term, snapshot=piece))
    return do(raft)


def test_a_follower_that_needs_what_is_gone_gets_a_snapshot_in_chunks() -> None:
    raft = leader(config=RaftConfig(chunk_bytes_max=4, trailing_entries=0))
    ack(raft, TWO, 1)
    raft.propose([b"x"])
    do(raft)
    ack(raft, TWO, 2)
    raft.compact(2, b"0123456789")
    follower = member(me=THREE)
    asked = Message(MessageKind.HEARTBEAT_REPLY, THREE, ONE, raft.term)
    raft.step(asked)
    raft.step(asked)
    pending = [m for m in do(raft) if m.target == THREE]
    for _ in range(20):
        if not pending:
            break
        follower.step(pending.pop(0))
        for answer in do(follower):
            raft.step(answer)
        pending += [m for m in do(raft) if m.target == THREE]
    assert follower.log.snapshot == Snapshot(2, 1, TRIO, b"0123456789")
    assert raft.progress[THREE.node].match == 2


def test_a_snapshot_replaces_a_log_that_it_contradicts() -> None:
    raft = member(1, 1)
    ready_kinds = []
    raft.step(Message(MessageKind.SNAPSHOT, TWO, ONE, 2, snapshot=chunk(0, b"state", 5)))
    while raft.has_ready():
        ready = one_ready(raft)
        ready_kinds.append((ready.snapshot, ready.must_sync))
    assert (Snapshot(5, 1, TRIO, b"state"), True) in ready_kinds
    assert (raft.log.base, raft.log.last, raft.log.applied, raft.log.commit) == (5, 5, 5, 5)


def test_a_snapshot_of_what_the_log_has_drops_nothing() -> None:
    """Entries after it may be acknowledged already."""
    raft = member(1, 1, 1, 1, 1, 1, 1)
    (answer,) = send_chunk(raft, chunk(0, b"state", 5))
    assert terms_of(raft) == [1] * 7
    assert (answer.index, raft.log.commit) == (5, 5)


def test_chunks_are_taken_in_order_only() -> None:
    raft = member()
    assert send_chunk(raft, chunk(0, b"ab", 6))[0].hint == 2
    assert send_chunk(raft, chunk(4, b"ef", 6))[0].hint == 2
    assert send_chunk(raft, chunk(0, b"ab", 6))[0].hint == 2
    assert send_chunk(raft, chunk(2, b"cd", 6))[0].hint == 4
    assert send_chunk(raft, chunk(0, b"xy", 4, index=7))[0].hint == 2, "another snapshot begins"
    send_chunk(raft, chunk(2, b"zz", 4, index=7))
    assert raft.log.snapshot.data == b"xyzz"


# -- the Ready ------------------------------------------------------------------------------------


def test_appends_leave_before_the_disk_and_acknowledgements_after_it() -> None:
    raft = leader()
    ack(raft, TWO, 1)
    raft.propose([b"x"])
    ready = one_ready(raft)
    assert {m.kind for m in ready.messages_early} == {MessageKind.APPEND}
    assert ready.must_sync
    follower = member(1)
    follower.step(Message(MessageKind.APPEND, TWO, ONE, 1, 1, 1, entries(1, first=2)))
    ready = one_ready(follower)
    assert ready.messages_early == ()
    assert [m.kind for m in ready.messages_late] == [MessageKind.APPEND_REPLY]


def test_nothing_leaves_early_while_the_term_is_not_stored() -> None:
    """A lone voter becomes leader and would send its learner entries of a term it may forget."""
    raft = member(conf=ConfState((ONE,), (TWO,)))
    raft.campaign()
    ready = raft.take_ready()
    assert ready.hard_state is not None
    assert ready.messages_early == ()
    assert MessageKind.APPEND in {message.kind for message in ready.messages_late}


def test_a_commit_alone_needs_no_sync() -> None:
    raft = member(1, 1)
    raft.step(Message(MessageKind.HEARTBEAT, TWO, ONE, 1, commit=1))
    ready = one_ready(raft)
    assert ready.hard_state == HardState(1, None, 1)
    assert not ready.must_sync


def test_one_ready_at_a_time() -> None:
    raft = leader()
    raft.propose([b"x"])
    ready = raft.take_ready()
    with pytest.raises(AssertionError, match="not done"):
        raft.take_ready()
    raft.advance(ready)
    with pytest.raises(AssertionError, match="not the Ready"):
        raft.advance(ready)


def test_a_follower_refuses_proposals_and_says_who_leads() -> None:
    raft = member(1)
    with pytest.raises(NotController):
        raft.read_index(b"r")
    append(raft, TWO, 1, (1, 1))
    with pytest.raises(NotController) as refused:
        raft.propose([b"x"])
    assert refused.value.leader == 2


def test_a_leader_without_followers_refuses_at_its_limits() -> None:
    raft = leader(config=RaftConfig(uncommitted_entries_max=3, reads_max=1))
    raft.propose([b"a", b"b"])
    with pytest.raises(Overloaded):
        raft.propose([b"c"])
    raft.read_index(b"r")
    with pytest.raises(Overloaded):
        raft.read_index(b"s")
