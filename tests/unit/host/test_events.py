"""The event log: in order, complete when it says so, and nothing when it is off."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from suiro.model.ids import NodeId
from suiro.model.limits import EVENTS_WAITING_MAX

from cluster.host.clock import SystemClock
from cluster.host.events import NO_EVENTS, FileEvents

if TYPE_CHECKING:
    from pathlib import Path


def read(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_events_are_written_in_order_and_survive_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "events.jsonl"
    for life in range(2):
        events = FileEvents(path, NodeId(7), SystemClock())
        assert events.on
        for number in range(1_000):
            events.emit("append", life=life, number=number, topic_id=b"\x01\xff")
        events.close()
    lines = read(path)
    assert [(line["life"], line["number"]) for line in lines] == [
        (life, number) for life in range(2) for number in range(1_000)
    ]
    assert (lines[0]["node"], lines[0]["event"], lines[0]["topic_id"]) == (7, "append", "01ff")


def test_a_full_queue_drops_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    events = FileEvents(path, NodeId(1), SystemClock())
    sent = EVENTS_WAITING_MAX * 3
    for number in range(sent):
        events.emit("append", number=number)
    while events.is_full:
        pass
    events.emit("last")
    events.close()
    lines = read(path)
    written = [line for line in lines if line["event"] == "append"]
    dropped = sum(int(str(line["count"])) for line in lines if line["event"] == "dropped")
    assert len(written) + dropped == sent
    assert lines[-1]["event"] == "last"


def test_off_is_off() -> None:
    assert not NO_EVENTS.on
    NO_EVENTS.emit("append", number=1)
    NO_EVENTS.close()
