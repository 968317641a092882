"""The examples of consumer groups do what they say."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cluster.local_cluster import Layout, LocalCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

FOLDER = Path(__file__).parents[2] / "examples" / "groups"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    layout = Layout(brokers=1, groups=1, txns=1)
    with LocalCluster(tmp_path_factory.mktemp("cluster"), layout) as running:
        yield running


@pytest.fixture
def example(
    cluster: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], list[str]]:
    """Run one, and return the lines that it printed."""

    def run(name: str) -> list[str]:
        runpy.run_path(str(FOLDER / f"{name}.py"))["main"](cluster.bootstrap)
        return capsys.readouterr().out.splitlines()

    return run


def test_at_most_once(example: Callable[[str], list[str]]) -> None:
    """1 and 2 were committed and not handled."""
    rest = [f"handled b'{number}'" for number in (3, 4, 5)]
    assert example("at_most_once") == ["handled b'0'", "crashed at b'1'", *rest]


def test_at_least_once(example: Callable[[str], list[str]]) -> None:
    """0 was handled and not committed."""
    again = [f"handled b'{number}'" for number in range(6)]
    assert example("at_least_once") == ["handled b'0'", "crashed at b'1'", *again]


def test_exactly_once(example: Callable[[str], list[str]]) -> None:
    results = [f"result b'{number**2}'" for number in range(6)]
    assert example("exactly_once") == ["crashed at b'4'", *results]


def test_queue_with_more_workers_than_partitions(example: Callable[[str], list[str]]) -> None:
    lines = example("queue")
    done = sorted(line.partition(" did ")[2] for line in lines if " did " in line)
    assert done == [f"b'job {number}'" for number in range(6)]
    shares = [line.partition(" has ")[2] for line in lines if " has " in line]
    assert sorted(shares[:3]) == ["jobs-0", "jobs-1", "nothing to do"]
    assert sorted(shares[3:]) == ["jobs-0", "jobs-1"]


def test_pub_sub(example: Callable[[str], list[str]]) -> None:
    users = [f"got b'user {number}'" for number in range(4)]
    lines = sorted(example("pub_sub"))
    assert lines == [f"{group} {user}" for group in ("mails", "statistics") for user in users]


def test_static_member(example: Callable[[str], list[str]]) -> None:
    assert example("static_member") == ["the same partitions: True", "rebalances: 0"]


def test_pattern(example: Callable[[str], list[str]]) -> None:
    assert example("pattern") == ["read shop-berlin, shop-tokyo"]


def test_own_assignor(example: Callable[[str], list[str]]) -> None:
    assert example("own_assignor") == ["alone: events-0"]
