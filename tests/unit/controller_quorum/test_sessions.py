"""Sessions: a broken stream is fenced after its grace, silence after the timeout."""

from __future__ import annotations

from suiro.model.ids import BrokerEpoch, NodeId

from cluster.controller_quorum.sessions import SESSION_GRACE_MS, SESSION_TIMEOUT_MS, Sessions

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


def test_a_broken_stream_is_fenced_after_the_grace() -> None:
    sessions = open_session()
    sessions.on_broken(ONE, E1, 100, 1_000)
    sessions.on_broken(ONE, E1, 100, 1_200)  # said twice: the first time counts
    assert not sessions.is_alive(ONE, 1_000)
    assert sessions.due(999 + SESSION_GRACE_MS) == []
    assert sessions.due(1_000 + SESSION_GRACE_MS) == [(ONE, E1)]


def test_the_grace_does_not_prolong_a_session() -> None:
    sessions = open_session()
    sessions.on_broken(ONE, E1, 100, SESSION_TIMEOUT_MS - 1)
    assert sessions.due(SESSION_TIMEOUT_MS) == [(ONE, E1)]


def test_a_new_stream_within_the_grace_saves_it() -> None:
    sessions = open_session()
    sessions.on_broken(ONE, E1, 100, 1_000)
    sessions.on_opened(ONE, E1, 101, 1_100)
    assert sessions.is_alive(ONE, 1_100)
    assert sessions.due(1_000 + SESSION_GRACE_MS) == []


def test_the_late_end_of_an_old_stream_means_nothing() -> None:
    sessions = open_session()
    sessions.on_opened(ONE, E1, 101, 500)
    sessions.on_broken(ONE, E1, 100, 600)
    assert sessions.is_alive(ONE, 600)
    assert sessions.due(600 + SESSION_GRACE_MS) == []


def test_an_old_incarnation_can_neither_keep_nor_break_the_new_session() -> None:
    sessions = open_session()
    sessions.on_registered(ONE, E2, 1_000)
    sessions.on_heard(ONE, E1, 3_500)
    sessions.on_broken(ONE, E1, 100, 1_100)
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
    sessions.on_broken(ONE, E1, 100, 10)
    sessions.restart([(TWO, E2)], 5_000)
    assert sessions.is_alive(TWO, 5_000)
    assert not sessions.is_alive(ONE, 5_000)
    assert sessions.due(4_999 + SESSION_TIMEOUT_MS) == []
    assert sessions.due(5_000 + SESSION_TIMEOUT_MS) == [(TWO, E2)]
