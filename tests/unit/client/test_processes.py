"""Threads and processes: what a client starts ends with it, and a fork is noticed."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, cast

import pytest
from suiro.loop_thread import LoopThread
from suiro.model.errors import ClientClosed
from suiro.settings import ProducerSettings
from suiro.stager import Stager

if TYPE_CHECKING:
    from collections.abc import Callable

CLIENTS = "suiro-clients"


class Loop:
    """Nobody runs it."""

    def call_soon_threadsafe(self, *_: object) -> None:
        return


def client_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == CLIENTS]


def in_child(work: Callable[[], bool]) -> bool:
    """What it says in a child process."""
    child = os.fork()
    if child == 0:
        code = 2
        try:
            code = 0 if work() else 1
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == 0


async def answer() -> int:
    return 42


def is_refused(work: Callable[[], object]) -> bool:
    try:
        work()
    except ClientClosed:
        return True
    return False


def test_the_last_client_ends_the_thread() -> None:
    before = client_threads()
    one, other = LoopThread(), LoopThread()
    assert client_threads() == [CLIENTS]
    assert (one.run(answer()), other.run(answer())) == (42, 42)
    one.close()
    assert other.run(answer()) == 42
    with pytest.raises(ClientClosed):
        one.run(answer())
    other.close()
    other.close()
    assert client_threads() == before


def test_a_child_has_a_thread_of_its_own() -> None:
    parent = LoopThread()

    def child() -> bool:
        refused = is_refused(lambda: parent.run(answer()))
        own = LoopThread()
        right = own.run(answer()) == 42
        own.close()
        return refused and right and not client_threads()

    assert in_child(child)
    assert parent.run(answer()) == 42
    parent.close()


def test_a_child_does_not_send_into_its_parents_buffer() -> None:
    stager = Stager(ProducerSettings(), lambda: None, lambda: 0)
    stager.start(cast("Any", Loop()))
    stager.send("t", b"the chunk is open")
    assert in_child(lambda: is_refused(lambda: stager.send("t", b"lost")))
    stager.send("t", b"the parent goes on")
    assert [len(run) for run in stager.take("t", -1)] == [2]
