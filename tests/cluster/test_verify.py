"""`suiro verify` on a live cluster."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cluster.harness import SingleNode

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.cluster


def test_a_healthy_cluster_keeps_its_promises(tmp_path: Path) -> None:
    with SingleNode(tmp_path) as node:
        command = [sys.executable, "-m", "suiro.cli", "verify", "--seconds", "2"]
        done = subprocess.run(
            [*command, "--bootstrap", node.bootstrap], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "broken promises: 0" in done.stdout
        left = subprocess.run(
            [sys.executable, "-m", "suiro.cli", "topic", "list", "--bootstrap", node.bootstrap],
            capture_output=True,
            text=True,
            check=True,
        )
        assert "suiro-verify" not in left.stdout
