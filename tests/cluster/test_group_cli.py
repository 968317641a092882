"""`suiro group` on a real cluster: what it shows is true, what it refuses it explains."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
import suiro
from suiro.cli import main

from cluster.local_cluster import Layout, LocalCluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

OLD_MS = 90_000
"""How long ago the records say that they were made."""

SENT = 30


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A topic of three partitions with ten records each, and a group that has read four of each."""
    layout = Layout(brokers=1, groups=1, txns=1)
    with LocalCluster(tmp_path_factory.mktemp("cluster"), layout) as running:
        with suiro.Admin(running.bootstrap) as admin:
            admin.create_topic("orders", partitions=3)
        with suiro.Producer(running.bootstrap) as producer:
            for number in range(SENT):
                producer.send(
                    "orders", b"x", partition=number % 3, timestamp_ms=sent_ms() + number // 3
                )
            producer.flush()
        with suiro.Consumer(running.bootstrap, group_id="billing") as consumer:
            consumer.commit({suiro.TopicPartition("orders", p): 4 for p in range(3)})
        yield running


def sent_ms() -> int:
    return BEGAN_MS - OLD_MS


BEGAN_MS = time.time_ns() // 1_000_000


def run(
    cluster: LocalCluster, *words: str, area: tuple[str, ...] = ("group",)
) -> subprocess.CompletedProcess[str]:
    """As the shell does, but in this process: starting another takes longer than the command."""
    out, err = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    line = ["suiro", *area, *words, "-b", cluster.bootstrap]
    with (
        patch.object(sys, "argv", line),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    code = ended.value.code
    assert isinstance(code, int)
    out.seek(0)
    return subprocess.CompletedProcess(line, code, out.read(), err.getvalue())


def ask(cluster: LocalCluster, *words: str) -> str:
    answer = run(cluster, *words)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def ask_json(cluster: LocalCluster, *words: str) -> Any:
    return json.loads(ask(cluster, *words, "-o", "json"))


def refused(cluster: LocalCluster, *words: str) -> str:
    answer = run(cluster, *words)
    assert answer.returncode == 1, answer.stdout
    return answer.stderr


def reset(cluster: LocalCluster, *words: str) -> list[int]:
    """The offsets that a reset would lead to."""
    plan = ask_json(cluster, "reset-offsets", "billing", *words)
    return [row["offset"] for row in plan]


def test_lag_in_records_and_seconds_agrees_with_the_truth(cluster: LocalCluster) -> None:
    shown = ask_json(cluster, "describe", "billing")
    true_s = time.time() - (sent_ms() + 4) / 1000
    assert (shown["state"], shown["members"]) == ("empty", [])
    for partition in shown["partitions"]:
        assert (partition["committed"], partition["end"], partition["lag"]) == (4, 10, 6)
        assert abs(partition["lag_seconds"] - true_s) < 5
        assert partition["owner"] is None
    lines = ask(cluster, "describe", "billing").splitlines()
    told, seconds = lines[1].removesuffix(" s").split(", ")
    assert (told, abs(float(seconds) - true_s) < 30) == ("lag: 18 records", True)
    assert lines[-1].split()[:5] == ["orders", "2", "4", "10", "6"]


def test_what_ends_a_transaction_is_no_lag(cluster: LocalCluster) -> None:
    with suiro.Admin(cluster.bootstrap) as admin:
        admin.create_topic("ledger", partitions=1)
    with suiro.Producer(cluster.bootstrap, transactional_id="ledger") as producer:
        producer.begin_transaction()
        producer.send("ledger", b"aborted").result(10)
        producer.abort_transaction()
        with producer.transaction():
            producer.send("ledger", b"committed")
    where = suiro.TopicPartition("ledger", 0)
    with suiro.Consumer(cluster.bootstrap, group_id="books") as consumer:
        lags = []
        for offset in (0, 2, 3):
            consumer.commit({where: offset})
            (shown,) = ask_json(cluster, "describe", "books")["partitions"]
            lags.append((shown["end"], shown["lag"], shown["lag_seconds"] > 0))
    assert lags == [(4, 2, True), (4, 2, True), (4, 0, False)]


def test_groups_are_listed_with_their_state(cluster: LocalCluster) -> None:
    listed = {each["group"]: each for each in ask_json(cluster, "list")}
    assert (listed["billing"]["state"], listed["billing"]["members"]) == ("empty", 0)
    assert "billing" in ask(cluster, "list")
    assert "billing" not in ask(cluster, "list", "--state", "stable")


def test_a_plan_changes_nothing(cluster: LocalCluster) -> None:
    scope = ("--topic", "orders")
    assert reset(cluster, *scope, "--to-earliest") == [0, 0, 0]
    assert reset(cluster, *scope, "--to-latest") == [10, 10, 10]
    assert reset(cluster, *scope, "--to-offset", "7") == [7, 7, 7]
    assert reset(cluster, "--topic", "orders:0,2", "--shift-by", "2") == [6, 6]
    assert reset(cluster, "--all-topics", "--shift-by=-3") == [1, 1, 1]
    moment = datetime.fromtimestamp((sent_ms() + 8) / 1000, UTC).isoformat()
    assert reset(cluster, *scope, "--to-datetime", moment) == [8, 8, 8]
    shown = ask(cluster, "reset-offsets", "billing", *scope, "--shift-by=-100")
    assert "-96 is not in the log" in shown
    assert shown.endswith("nothing was changed, add --execute to do it\n")
    assert {p["committed"] for p in ask_json(cluster, "describe", "billing")["partitions"]} == {4}


def test_a_plan_is_carried_out_and_taken_back_from_a_file(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    was = tmp_path / "was.csv"
    was.write_text("topic,partition,offset\norders,0,4\norders,1,4\norders,2,4\n")
    done = ask(cluster, "reset-offsets", "billing", "-t", "orders:1", "--to-earliest", "--execute")
    assert done.endswith("1 offsets reset\n")
    now = ask_json(cluster, "describe", "billing")["partitions"]
    assert [(p["committed"], p["lag"]) for p in now] == [(4, 6), (0, 10), (4, 6)]
    planned = tmp_path / "plan.json"
    planned.write_text(
        ask(cluster, "reset-offsets", "billing", "--from-file", str(was), "-o", "json")
    )
    ask(cluster, "reset-offsets", "billing", "--from-file", str(planned), "--execute")
    now = ask_json(cluster, "describe", "billing")["partitions"]
    assert [p["committed"] for p in now] == [4, 4, 4]


def test_what_cannot_be_meant_is_refused(cluster: LocalCluster, tmp_path: Path) -> None:
    base = ("reset-offsets", "billing")
    assert "say one of --to-earliest" in refused(cluster, *base, "-t", "orders")
    assert "either --topic or --all-topics" in refused(cluster, *base, "--to-latest")
    assert "needs a time zone" in refused(
        cluster, *base, "-t", "orders", "--to-datetime", "2026-01-01"
    )
    assert "has 3 partitions" in refused(cluster, *base, "-t", "orders:9", "--to-latest")
    assert "nowhere" in refused(cluster, *base, "-t", "nowhere", "--to-latest")
    bad = tmp_path / "bad.csv"
    bad.write_text("orders;0;4\n")
    assert "is not topic,partition,offset" in refused(cluster, *base, "--from-file", str(bad))


@pytest.mark.parametrize("words", [("describe",), ("members",), ("history",), ("delete", "-y")])
def test_a_group_that_is_not_there(cluster: LocalCluster, words: tuple[str, ...]) -> None:
    assert "there is no group 'nobody'" in refused(cluster, words[0], "nobody", *words[1:])


def test_a_group_may_be_told_where_to_begin_before_it_exists(cluster: LocalCluster) -> None:
    words = ("reset-offsets", "fresh", "-t", "orders", "--to-offset", "2")
    assert "there is no group 'fresh'" in refused(cluster, *words)
    ask(cluster, *words, "--new", "--execute")
    assert {p["lag"] for p in ask_json(cluster, "describe", "fresh")["partitions"]} == {8}
    assert ask(cluster, "delete", "fresh", "--yes") == "deleted fresh\n"
    assert "there is no group 'fresh'" in refused(cluster, "describe", "fresh")


def test_consume_as_a_member_goes_on_where_the_group_is(cluster: LocalCluster) -> None:
    words = ("consume", "orders", "--from-beginning", "--group", "shell", "--timeout", "3")
    assert run(cluster, *words, "-n", "12", area=()).stdout.count("x") == 12
    shown = ask_json(cluster, "describe", "shell")
    assert (shown["state"], sum(p["lag"] for p in shown["partitions"])) == ("empty", SENT - 12)
    assert run(cluster, *words, area=()).stdout.count("x") == SENT - 12
    refusal = run(cluster, *words, "--partition", "1", area=())
    assert (refusal.returncode, "--group or --partition" in refusal.stderr) == (1, True)


def test_an_active_group_is_described_and_left_alone(cluster: LocalCluster) -> None:
    settings = suiro.ConsumerSettings(
        group_id="active", auto_offset_reset="earliest", client_id="reader"
    )
    with suiro.Consumer(cluster.bootstrap, settings=settings) as consumer:
        consumer.subscribe("orders")
        seen = 0
        while seen < SENT:
            seen += len(consumer.poll(10))
        consumer.commit()
        shown = ask_json(cluster, "describe", "active")
        assert (shown["state"], shown["assignor"]) == ("stable", "cooperative-sticky")
        assert shown["last_rebalance"]["moved"] == 3
        assert "join" in shown["last_rebalance"]["reason"]
        (member,) = ask_json(cluster, "members", "active")
        assert (member["client_id"], member["assigned"]) == (
            "reader",
            ["orders-0", "orders-1", "orders-2"],
        )
        for partition in shown["partitions"]:
            assert (partition["lag"], partition["lag_seconds"]) == (0, 0.0)
            assert (partition["owner"], partition["client_id"], partition["host"]) == (
                member["member_id"],
                "reader",
                "127.0.0.1",
            )
        assert member["member_id"] in ask(cluster, "members", "active")
        assert "orders-1: nobody -> reader-" in ask(cluster, "history", "active", "--moves")
        assert ask_json(cluster, "history", "active")[-1] == shown["last_rebalance"]
        words = ("reset-offsets", "active", "-t", "orders", "--to-earliest")
        for refusal in (refused(cluster, *words), refused(cluster, *words, "--execute")):
            assert "active is active: 1 members (reader at 127.0.0.1)" in refusal
            assert "Stop its consumers first" in refusal
        assert "has 1 active members" in refused(cluster, "delete", "active", "--yes")
