"""From `send` to runs: nothing lost, nothing mixed up, whatever the threads do."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest
from suiro.bulk import ArrowRun, rows_of_lists, run_of_arrow
from suiro.handle import Outcomes, RecordMetadata, Sent
from suiro.model.columns import decode
from suiro.model.encode import BatchOptions
from suiro.model.errors import BufferFull, ClientClosed, InvalidRequest
from suiro.settings import ProducerSettings
from suiro.stager import Stager

if TYPE_CHECKING:
    from suiro.staging import Rows


class Loop:
    """Counts how often it is woken."""

    def __init__(self) -> None:
        self.woken = 0

    def call_soon_threadsafe(self, callback: object, *args: object) -> None:
        self.woken += 1
        if args:
            callback(*args)  # type: ignore[operator]


def stager(**settings: int) -> tuple[Stager, Loop]:
    loop = Loop()
    staging = Stager(ProducerSettings(**settings), lambda: None, lambda: 1_000)  # type: ignore[arg-type]
    staging.start(loop)  # type: ignore[arg-type]
    return staging, loop


def take_all(staging: Stager) -> list[Rows]:
    taken = []
    for topic in staging.topics():
        taken += staging.take(topic, -1)
    return taken  # type: ignore[return-value]


def outcomes() -> Outcomes:
    return Outcomes(cast("Any", Loop()), "t")


def test_a_record_is_staged_with_everything_it_has() -> None:
    staging, _ = stager()
    staging.send("t", b"plain")
    staging.send("t", None, key=b"k", headers=[("h", b"1")], partition=4, timestamp_ms=7)
    (rows,) = take_all(staging)
    assert list(rows.values) == [b"plain", None]
    assert rows.keys == [None, b"k"]
    assert rows.timestamps_ms.tolist() == [1_000, 7]
    assert rows.headers == [(), [("h", b"1")]]
    assert rows.partitions is not None
    assert rows.partitions.tolist() == [-1, 4]
    columns = decode(rows.encode([rows], BatchOptions()))
    assert columns.keys_list() == [None, b"k"]
    assert columns.headers_list() == [(), (("h", b"1"),)]


def test_the_loop_is_woken_once_for_many_and_again_for_what_comes_later() -> None:
    staging, loop = stager()
    for _ in range(10):
        staging.send("t", b"v")
    assert loop.woken == 1
    assert len(take_all(staging)[0]) == 10
    staging.send("t", b"late")  # goes where the loop has just looked
    assert loop.woken == 2
    assert [list(rows.values) for rows in take_all(staging)] == [[b"late"]]
    staging.send("t", b"later")
    assert loop.woken == 3
    assert [list(rows.values) for rows in take_all(staging)] == [[b"later"]]
    assert not staging.has_any()


def test_what_is_sent_in_bulk_keeps_its_place() -> None:
    staging, _ = stager()
    staging.send("t", b"1")
    rows = rows_of_lists(
        staging.outcomes("t"), [b"2", b"3"], None, headers=None, partition=None, timestamps_ms=5
    )
    staging.put("t", rows)
    staging.send("t", b"4")
    assert [value for rows in take_all(staging) for value in rows.values] == [
        b"1", b"2", b"3", b"4",
    ]  # fmt: skip


def test_handles_find_their_own_record_among_threads() -> None:
    staging, _ = stager()
    sent: list[tuple[bytes, Sent]] = []
    stop = threading.Event()
    taken: list[Rows] = []

    def sender(name: int) -> None:
        for number in range(3_000):
            value = b"%d-%d" % (name, number)
            sent.append((value, staging.send("t", value, key=value)))

    def taker() -> None:
        while not stop.is_set():
            taken.extend(take_all(staging))

    threads = [threading.Thread(target=sender, args=(name,)) for name in range(3)]
    taking = threading.Thread(target=taker)
    for thread in [taking, *threads]:
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    taking.join()
    taken += take_all(staging)
    where: dict[int, bytes | None] = {}
    next_offset = 0
    for rows in taken:
        assert rows.keys == rows.values
        rows.settle(0, next_offset, None)
        where.update({next_offset + n: value for n, value in enumerate(rows.values)})
        next_offset += len(rows)
    assert next_offset == 9_000
    for value, handle in sent:
        assert where[handle.result(0).offset] == value
    for name in range(3):
        own = [v for _, v in sorted(where.items()) if v is not None and v.startswith(b"%d-" % name)]
        assert own == [b"%d-%d" % (name, n) for n in range(3_000)], "each thread's order is kept"


def test_a_full_buffer_refuses_and_takes_nothing() -> None:
    staging, _ = stager(buffer_memory=100_000, batch_size=10_000)
    accepted = 0

    def send_on() -> None:
        nonlocal accepted
        for _ in range(10_000):
            staging.send("t", b"v" * 100)
            accepted += 1
            if accepted % 50 == 0:
                take_all(staging)

    with pytest.raises(BufferFull):
        send_on()
    assert 500 < accepted < 1_100
    staging.release(50_000)
    staging.send("t", b"v")


def test_closed_is_closed() -> None:
    staging, _ = stager()
    staging.send("t", b"v")
    staging.close()
    with pytest.raises(ClientClosed):
        staging.send("t", b"v")


@pytest.mark.parametrize("given", [{"value": "text"}, {"value": b"v", "key": 5}])
def test_wrong_types_are_refused_at_once(given: dict[str, object]) -> None:
    staging, _ = stager()
    with pytest.raises(InvalidRequest, match="it must be bytes or None"):
        staging.send("t", **given)  # type: ignore[arg-type]
    assert not staging.has_any()


# -- bulk -----------------------------------------------------------------------------------------


def test_an_arrow_table_becomes_runs_of_its_columns() -> None:
    table = pa.table(
        {
            "key": ["a", None, "c"],
            "value": [b"1", b"2", None],
            "timestamp": pa.array([5, None, 7], pa.timestamp("ms")),
            "partition": [1, 0, 1],
            "offset": [10, 11, 12],
        }
    )
    run = run_of_arrow(outcomes(), table, 99)
    assert run.partitions is not None
    assert run.partitions.tolist() == [1, 0, 1]
    assert run.to_list() == ["a", None, "c"]
    columns = decode(run.encode([run], BatchOptions()))
    assert columns.keys_list() == [b"a", None, b"c"]
    assert columns.values_list() == [b"1", b"2", None]
    assert columns.timestamps_list() == [5, 99, 7]


def test_parts_of_an_arrow_run_know_their_records() -> None:
    table = pa.table({"value": [b"%d" % n * 20 for n in range(1_000)]})
    run = run_of_arrow(outcomes(), table, 5)
    parts = run.split(5_000)
    assert len(parts) > 4
    assert all(part.size <= 5_000 for part in parts)
    offset = 0
    for part in parts:
        part.settle(3, offset, None)
        offset += len(part)
    assert run.outcomes.find(777) == RecordMetadata("t", 3, 777, 5)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pa.table({"valeu": [b"1"]}), "needed is value"),
        (pa.table({"value": [[1]]}), "column value is list"),
        (pa.table({"value": [b"1"], "timestamp": ["today"]}), "column timestamp is string"),
        (5, "int is no Arrow table"),
    ],
)
def test_wrong_tables_are_explained(data: object, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        run_of_arrow(outcomes(), data, 0)


def test_anything_with_the_arrow_interface_is_taken() -> None:
    class Frame:
        def __arrow_c_stream__(self, requested: object = None) -> object:
            return pa.table({"value": [b"1", b"2"]}).__arrow_c_stream__(requested)

    assert len(run_of_arrow(outcomes(), Frame(), 0)) == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"values": [b"a", "b"]}, "values has str"),
        ({"values": [b"a"], "keys": [b"k", b"l"]}, "1 values, but 2 keys"),
        ({"values": [b"a"], "timestamps_ms": [1, 2]}, "1 values, but 2 timestamps_ms"),
    ],
)
def test_wrong_lists_are_explained(given: dict[str, object], message: str) -> None:
    settings: dict[str, object] = {
        "keys": None, "headers": None, "partition": None, "timestamps_ms": 0
    }  # fmt: skip
    with pytest.raises(InvalidRequest, match=message):
        rows_of_lists(outcomes(), **{**settings, **given})  # type: ignore[arg-type]


def test_keys_of_a_slice_are_its_own() -> None:
    table = pa.table({"key": [b"skip", b"a", b"bb"], "value": [b"0", b"1", b"2"]}).slice(1)
    run: ArrowRun = run_of_arrow(outcomes(), table, 0)
    data, starts, lengths, _ = run.arrays()
    assert [bytes(data[s : s + n]) for s, n in zip(starts, lengths, strict=True)] == [b"a", b"bb"]


def test_a_run_that_is_split_keeps_where_its_records_shall_go() -> None:
    rows = rows_of_lists(
        outcomes(), [b"x" * 50] * 99, None, headers=None, partition=2, timestamps_ms=0
    )
    parts = rows.split(1_000)
    assert all(part.size <= 1_000 for part in parts)
    assert [place for part in parts for place in part.places] == list(range(99))
    assert all(part.partitions is not None and set(part.partitions) == {2} for part in parts)


def test_one_large_record_among_small_ones_is_alone() -> None:
    values = [b"s"] * 20 + [b"L" * 5_000] + [b"s"] * 20
    rows = rows_of_lists(outcomes(), values, None, headers=None, partition=None, timestamps_ms=0)
    parts = rows.split(1_000)
    assert [value for part in parts for value in part.values] == values
    assert [len(part) for part in parts if part.size > 1_000] == [1]
