"""Short versions of replication's long runs: killed, cut off and stopped leaders, rolling restarts.

Each prints its own table when it fails; `python -m tests.cluster.replication_…` is the long one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cluster.netns import reason_against
from tests.cluster.replication_kill import kill_leaders
from tests.cluster.replication_partition import take_leaders_away
from tests.cluster.replication_roll import restart_all

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]

KILLS = 5


async def test_killing_leaders_loses_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = await kill_leaders(tmp_path, kills=KILLS, partitions=3)
    with capsys.disabled():
        print(f"\n{report.table()}")
    assert report.verdict.is_good, report.table()
    assert report.is_fast, report.table()


async def test_a_leader_that_is_cut_off_serves_nobody(tmp_path: Path) -> None:
    reason = reason_against()
    if reason is not None:
        pytest.skip(reason)
    report = await take_leaders_away(tmp_path, ["stopped", "deaf"])
    assert report.is_good, report.table()


async def test_a_rolling_restart_fails_no_send(tmp_path: Path) -> None:
    report = await restart_all(tmp_path, partitions=3, rounds=1)
    assert report.is_good, report.table()
