"""Transactions under seeds: clean, told again the same way, and harsh enough to count."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sim.seeds import Total, run_range
from tests.sim.txn_sim import run_seed

SEEDS = 80
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def total() -> Total:
    return run_range(run_seed, (0, SEEDS))


def test_no_promise_is_broken(total: Total) -> None:
    assert total.failures == []


@pytest.mark.parametrize(
    ("what", "at_least"),
    [
        ("commits told", 80),
        ("aborts told", 30),
        ("batches committed", 30),
        ("values read", 200),
        ("duplicates answered", 80),
        ("ended by fenced", 20),
        ("ended by timeout", 5),
        ("ended by operator", 5),
        ("producer ids rolled", 30),
        ("late markers", 2),
        ("messages very late", 20),
        ("coordinator fails", 15),
        ("partition fails", 15),
    ],
)
def test_the_seeds_do_enough(total: Total, what: str, at_least: int) -> None:
    """A weak generator finds nothing: so much of it per ten seeds, on average."""
    assert total.counts[what] >= at_least * SEEDS // 10


def test_the_same_seed_is_the_same_story_under_any_hash_seed() -> None:
    code = (
        "from tests.sim.txn_sim import run_seed\n"
        "print([(o.trace, o.events) for o in map(run_seed, range(4))])"
    )
    stories = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(stories) == 1
