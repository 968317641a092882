"""The id of a request: what is taken over, what is begun, and what a log line says of it."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from typing import TYPE_CHECKING

import pytest
from suiro.transport import trace

from cluster.host.logs import set_up_logging

if TYPE_CHECKING:
    from collections.abc import Iterator

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture(autouse=True)
def _for_nobody() -> Iterator[None]:
    trace.work_for("")
    yield
    trace.work_for("")


def test_a_client_begins_a_request_and_a_node_only_passes_one_on() -> None:
    assert trace.forwarded() is None
    ((key, begun),) = trace.begun()
    assert key == "traceparent"
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", begun)
    assert trace.begun() != trace.begun(), "each call is a request of its own"
    trace.work_for(PARENT)
    assert trace.forwarded() == trace.begun() == (("traceparent", PARENT),)
    assert trace.current_id() == PARENT[3:35]


@pytest.mark.parametrize("bad", ["", "00-1-2-01", PARENT.upper(), f"{PARENT}\n", PARENT[:-1]])
def test_what_is_malformed_is_nobodys_request(bad: str) -> None:
    trace.work_for(PARENT)
    trace.work_for(bad)
    assert (trace.current(), trace.current_id()) == ("", "")


def test_it_is_found_among_the_metadata_of_a_call() -> None:
    assert trace.parent_in([("user-agent", "x"), ("traceparent", PARENT)]) == PARENT
    assert trace.parent_in([("traceparent", b"bytes")]) == ""
    assert trace.parent_in(None) == ""


async def test_each_task_works_for_its_own() -> None:
    async def serve(parent: str) -> str:
        trace.work_for(parent)
        await asyncio.sleep(0)
        return trace.current()

    other = PARENT.replace("4bf9", "ffff")
    first, second = await asyncio.gather(serve(PARENT), serve(other))
    assert (first, second) == (PARENT, other)
    assert trace.current() == ""


@pytest.fixture
def _logging_as_before() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("suiro")
    before = root.handlers[:], root.level, ours.level
    yield
    root.handlers[:], level, own = before
    root.setLevel(level)
    ours.setLevel(own)


@pytest.mark.usefixtures("_logging_as_before")
def test_a_line_for_people_names_the_request(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging("human")
    logging.getLogger("suiro.node").info("on our own")
    trace.work_for(PARENT)
    logging.getLogger("suiro.node").info("for somebody")
    logging.getLogger("suiro.node").debug("not asked for")
    own, served = capsys.readouterr().err.splitlines()
    assert own.endswith(" I suiro.node: on our own")
    assert served.endswith(f" I suiro.node [{PARENT[3:35]}]: for somebody")


@pytest.mark.usefixtures("_logging_as_before")
def test_a_line_for_machines_has_it_as_a_field(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging("json", "debug")
    trace.work_for(PARENT)
    logging.getLogger("suiro.node").debug("asked for")
    line = json.loads(capsys.readouterr().err)
    assert (line["level"], line["message"]) == ("debug", "asked for")
    assert line["request"] == PARENT[3:35]
