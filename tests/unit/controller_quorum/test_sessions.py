"""Sessions: silence is fenced after the timeout, a dead process at once, a broken stream never."""

from __future__ import annotations

from suiro.model.ids import BrokerEpoch, NodeId

from cluster.controller_quorum.sessions import SESSION_TIMEOUT_MS, Sessions

ONE, TWO = NodeId(1), NodeId(2)
E1, E2 = BrokerEpoch(1), BrokerEpoch(2)


def open_session(now_ms: float = 0) -> Sessions:
    sessions = Sessions()
    sessions.on_registered(ONE, E1, now_ms)
    sessions.on_opened(ONE, E1, 100, now_ms)
    return sessions


def test_silence_is_fenced_after_the_timeout() -> None:
    sessions = open_session()
    sessions.on_heard(ONE, E1, 1_000)
    assert sessions.next_due_ms() == 1_000 + SESSION_TIMEOUT_MS
    assert sessions.due(999 + SESSION_TIMEOUT_MS) == []
    assert sessions.is_alive(ONE, 999 + SESSION_TIMEOUT_MS)
    assert sessions.due(1_000 + SESSION_TIMEOUT_MS) == [(ONE, E1)]
    assert not sessions.is_alive(ONE, 1_000 + SESSION_TIMEOUT_MS)


def test_a_broken_stream_proves_nothing() -> None:
    sessions = open_session()
    sessions.on_broken(ONE, E1, 100)
    assert not sessions.is_alive(ONE, 1_000)  # its successor may register
    assert sessions.broken() == [(ONE, E1)]
    assert sessions.due(SESSION_TIMEOUT_MS - 1) == []
    assert sessions.due(SESSION_TIMEOUT_MS) == [(ONE, E1)]


def test_a_dead_process_is_due_at_once() -> None:
    sessions = open_session()
    sessions.on_dead(ONE, E1)  # its stream lives: whoever looked was wrong, or too early
    assert sessions.due(1_000) == []
    sessions.on_broken(ONE, E1, 100)
    sessions.on_dead(ONE, E1)
    assert sessions.broken() == []
    assert sessions.due(1_000) == [(ONE, E1)]


def test_a_new_stream_saves_it() -> None:
    sessions = open_session()
    sessions.on_broken(ONE, E1, 100)
    sessions.on_opened(ONE, E1, 101, 1_100)
    sessions.on_dead(ONE, E1)  # the answer to a look from before
    assert sessions.is_alive(ONE, 1_100)
    assert sessions.due(1_400) == []


def test_the_late_end_of_an_old_stream_means_nothing() -> None:
    sessions = open_session()
    sessions.on_opened(ONE, E1, 101, 500)
    sessions.on_broken(ONE, E1, 100)
    assert sessions.is_alive(ONE, 600)
    assert sessions.due(900) == []


def test_an_old_incarnation_can_neither_keep_nor_break_the_new_session() -> None:
    sessions = open_session()
    sessions.on_registered(ONE, E2, 1_000)
    sessions.on_heard(ONE, E1, 3_500)
    sessions.on_broken(ONE, E1, 100)
    sessions.on_opened(ONE, E1, 102, 3_500)
    sessions.forget(ONE, E1)
    assert sessions.due(3_999) == []
    assert sessions.due(1_000 + SESSION_TIMEOUT_MS) == [(ONE, E2)]


def test_a_stream_of_a_newer_incarnation_begins_its_session() -> None:
    sessions = open_session()
    sessions.on_opened(ONE, E2, 7, 2_000)
    assert sessions.due(2_000 + SESSION_TIMEOUT_MS) == [(ONE, E2)]


def test_due_repeats_until_forgotten_and_is_ordered() -> None:
    sessions = Sessions(timeout_ms=10)
    sessions.on_registered(TWO, E2, 0)
    sessions.on_registered(ONE, E1, 0)
    assert sessions.due(10) == sessions.due(11) == [(ONE, E1), (TWO, E2)]
    sessions.forget(ONE, E1)
    assert sessions.due(11) == [(TWO, E2)]
    sessions.forget(TWO, E2)
    assert sessions.next_due_ms() is None


def test_a_new_active_controller_gives_fresh_sessions() -> None:
    sessions = open_session()
    sessions.on_broken(ONE, E1, 100)
    sessions.restart([(TWO, E2)], 5_000)
    assert sessions.is_alive(TWO, 5_000)
    assert not sessions.is_alive(ONE, 5_000)
    assert sessions.due(4_999 + SESSION_TIMEOUT_MS) == []
    assert sessions.due(5_000 + SESSION_TIMEOUT_MS) == [(TWO, E2)]
