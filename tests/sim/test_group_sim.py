"""Some seeds of the group simulation; `make group-sim` runs many."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sim.group_sim import run_seed
from tests.sim.seeds import Total, run_range

SEEDS = 30
FOUND = (10, 73)
"""10: a notice read after the session was over; 73: a late copy of a static member's join."""

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def total() -> Total:
    return run_range(run_seed, (0, SEEDS))


def test_no_promise_is_broken(total: Total) -> None:
    assert total.failures == []


@pytest.mark.parametrize("seed", FOUND)
def test_seeds_that_once_failed(seed: int) -> None:
    assert run_seed(seed).failure is None


@pytest.mark.parametrize(
    ("what", "at_least"),
    [
        ("commits", 1_000),
        ("reads", 50),
        ("grants", 50),
        ("rebalances", 20),
        ("fenced", 5),
        ("failovers", 2),
        ("transactions", 50),
        ("resets", 1),
        ("refused", 10),
    ],
)
def test_the_seeds_do_enough(total: Total, what: str, at_least: int) -> None:
    """A weak generator finds nothing: so much of it per ten seeds, on average."""
    assert total.counts[what] >= at_least * SEEDS // 10


def test_the_same_seed_is_the_same_story_under_any_hash_seed() -> None:
    code = (
        "from tests.sim.group_sim import run_seed\n"
        "print([(o.trace, o.events) for o in map(run_seed, range(2))])"
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
