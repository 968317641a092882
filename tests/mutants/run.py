"""All planted bugs together: who catches each, in how many seeds, and which rows that covers.

    make mutants            directed tests for all, and up to SEEDS seeds each
    python -m tests.mutants.run --seeds 200

Rows are those of the table of other systems' bugs (section 1 of the reliability document). Fails if
a bug is not caught, if a canary is, or if there are fewer than 42.
"""

from __future__ import annotations

import argparse
import logging
import re
import sys
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from tests.mutants import (
    group_mutants,
    raft_mutants,
    replication_mutants,
    storage_mutants,
    system_mutants,
    test_group_mutants,
    test_raft_mutants,
    test_replication_mutants,
    test_storage_mutants,
    test_system_mutants,
    test_txn_mutants,
    txn_mutants,
)

if TYPE_CHECKING:
    from tests.mutants.hunt import Hunt
    from tests.mutants.registry import Mutant

PLANTED_MIN = 42
ROW = re.compile(r"row (\d+)")
NOT_APPLICABLE = {
    16: "no tiered storage yet", 29: "no share groups", 32: "no tiered storage yet",
    33: "no tiered storage yet", 41: "a lesson, no bug of ours to plant",
}  # fmt: skip
ROWS = range(1, 43)


@dataclass(frozen=True)
class Area:
    """One registry, and how its bugs are hunted."""

    name: str
    hunt: Hunt
    mutants: tuple[Mutant, ...]
    canary: Mutant
    seeds_max: int
    """Whole-system seeds take seconds, those of one core milliseconds."""


AREAS = (
    Area("raft", test_raft_mutants.HUNT, raft_mutants.RAFT_MUTANTS, raft_mutants.CANARY, 10_000),
    Area(
        "replication",
        test_replication_mutants.HUNT,
        replication_mutants.REPLICATION_MUTANTS,
        replication_mutants.CANARY,
        10_000,
    ),
    Area(
        "groups", test_group_mutants.HUNT, group_mutants.GROUP_MUTANTS, group_mutants.CANARY, 10_000
    ),
    Area("txn", test_txn_mutants.HUNT, txn_mutants.TXN_MUTANTS, txn_mutants.CANARY, 10_000),
    Area(
        "storage",
        test_storage_mutants.HUNT,
        storage_mutants.STORAGE_MUTANTS,
        storage_mutants.CANARY,
        2,
    ),
    Area(
        "system", test_system_mutants.HUNT, system_mutants.SYSTEM_MUTANTS, system_mutants.CANARY, 5
    ),
)


@dataclass(frozen=True)
class Catch:
    """Who caught a bug: the first directed test, and the number of seeds it took."""

    mutant: Mutant
    directed: str | None
    seeds: int | None

    @property
    def is_caught(self) -> bool:
        return self.directed is not None or self.seeds is not None

    def line(self, area: str) -> str:
        verdict = "caught" if self.is_caught else "MISSED"
        seeds = "-" if self.seeds is None else str(self.seeds)
        return (
            f"{verdict} {area:11} {self.mutant.breaks:9} {seeds:>5} "
            f"{self.mutant.name[:80]:80} {self.directed or '-'}"
        )


def hunt(area: Area, mutant: Mutant, seeds: int) -> Catch:
    return Catch(
        mutant,
        area.hunt.first_directed(mutant),
        area.hunt.first_seed(mutant, min(seeds, area.seeds_max)),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--area", choices=[area.name for area in AREAS], help="this one alone")
    options = parser.parse_args()
    seeds = options.seeds
    catches, canaries = [], []
    for area in [area for area in AREAS if options.area in {None, area.name}]:
        for mutant in area.mutants:
            catches.append(hunt(area, mutant, seeds))
            print(catches[-1].line(area.name), flush=True)
        canaries.append(hunt(area, area.canary, seeds))
    _sum_up(catches, canaries, seeds)
    if options.area is None:
        _tell_rows(catches)
    is_enough = len(catches) >= PLANTED_MIN or options.area is not None
    is_right = all(c.is_caught for c in catches) and not any(c.is_caught for c in canaries)
    return int(not (is_enough and is_right))


def _sum_up(catches: list[Catch], canaries: list[Catch], seeds: int) -> None:
    caught = sum(catch.is_caught for catch in catches)
    taken = [catch.seeds for catch in catches if catch.seeds is not None]
    wrong = [catch.mutant.name for catch in canaries if catch.is_caught]
    print(f"\ncaught / planted           {caught} / {len(catches)}")
    if taken:
        most = f"median {median(taken):.0f}, most {max(taken)}"
        print(f"by at most {seeds} seeds        {len(taken)}, {most}, {sum(taken)} seeds in all")
    print(f"canaries that were caught  {wrong or 'none'} of {len(canaries)}")


def _tell_rows(catches: list[Catch]) -> None:
    rows = {int(row) for catch in catches for row in ROW.findall(catch.mutant.name)}
    missing = [row for row in ROWS if row not in rows and row not in NOT_APPLICABLE]
    print(f"rows with a bug planted    {len(rows)}: {sorted(rows)}")
    print(f"rows without one           {missing}")
    print(f"rows that do not apply     {NOT_APPLICABLE}")


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    sys.exit(main())
