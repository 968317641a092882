"""A rolling update of the brokers of the manifests, with their own commands and probes (L2)."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.k8s.pods import reason_against

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.skipif(reason_against() is not None, reason=str(reason_against())),
]

ROLL = ["unshare", "--mount", sys.executable, "-m", "tests.k8s.roll"]


def rolled(*words: str) -> str:
    done = subprocess.run([*ROLL, *words], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_brokers_are_restarted_without_a_failed_send() -> None:
    said = rolled("--sets", "suiro-broker")
    assert "failed sends                   none" in said
    assert "anomalies (P1 to P8)           none" in said


def test_every_role_is_restarted_without_a_failed_send() -> None:
    assert "suiro-controller-0" in rolled()
