"""A failpoint ends the process that reaches it, once, and no other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from cluster.txncoord.failpoint import VARIABLE, Failpoint

if TYPE_CHECKING:
    from pathlib import Path

REACH = "from cluster.txncoord.failpoint import Failpoint; point = Failpoint.from_environment()"


def reach(path: Path, *words: str) -> int:
    code = f"{REACH}; point.reached(*{words})"
    environment = {**os.environ, VARIABLE: str(path)}
    return subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode


def test_it_dies_at_the_point_and_takes_the_order_with_it(tmp_path: Path) -> None:
    order = tmp_path / "order"
    assert reach(order, "before", "ongoing") == 0
    order.write_text("before ongoing")
    assert reach(order, "before", "empty") == 0
    assert reach(order, "before", "ongoing") == -signal.SIGKILL
    assert not order.exists()
    assert reach(order, "before", "ongoing") == 0


def test_without_the_variable_nothing_is_looked_at() -> None:
    point = Failpoint("")
    assert not point.is_set
    point.reached("before", "ongoing")
