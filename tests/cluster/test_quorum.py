"""Short versions of the quorum's long runs: real processes, real disks, real signals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cluster.quorum_kill import kill_leaders
from tests.cluster.quorum_members import change_members
from tests.cluster.quorum_pause import pause_leaders

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.cluster


async def test_killing_the_leader_loses_nothing(tmp_path: Path) -> None:
    report = await kill_leaders(tmp_path, kills=2, clients=8, pause_s=0.005)
    assert report.is_good, report.table()


async def test_a_woken_leader_tells_no_old_news(tmp_path: Path) -> None:
    report = await pause_leaders(tmp_path, pauses=2)
    assert report.is_good, report.table()


async def test_members_change_under_load(tmp_path: Path) -> None:
    report = await change_members(tmp_path, clients=4)
    assert report.is_good, report.table()
