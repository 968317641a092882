"""Seeds of the quorum's micro-simulation, and that a seed is a story that can be told again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.sim.raft_sim import run_seed
from tests.sim.seeds import run_range

ROOT = Path(__file__).parents[2]
SEEDS = 300


def test_seeds_hold_every_invariant() -> None:
    total = run_range(run_seed, (0, SEEDS))
    assert total.failures == []
    missing = [name for name in WANTED if not total.counts[name]]
    assert not missing, f"the swarm no longer does {missing}"


WANTED = (
    "acknowledged",
    "reads served",
    "leaders elected",
    "snapshots installed",
    "dropped",
    "duplicated",
    "slow",
    "crash",
    "split",
    "bridge",
    "one way in",
    "one way out",
    "isolate leader",
    "pause",
    "transfer",
    "add_learner",
    "promote",
    "remove",
    "wipe",
    "quorum alone",
)


def test_the_same_seed_gives_the_same_trace() -> None:
    for seed in range(20):
        first, second = run_seed(seed), run_seed(seed, verbose=True)
        assert (first.trace, first.events) == (second.trace, second.events)


def test_traces_do_not_depend_on_the_hash_seed() -> None:
    script = (
        "from tests.sim.raft_sim import run_seed\n"
        "print([run_seed(seed).trace for seed in range(30)])"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(printed) == 1
    assert printed == {f"{[run_seed(seed).trace for seed in range(30)]}\n"}


def test_different_seeds_differ() -> None:
    assert len({run_seed(seed).trace for seed in range(30)}) == 30
