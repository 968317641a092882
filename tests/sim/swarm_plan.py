"""What one seed of the whole-system simulation is made of: its cluster, its faults, its clients.

Swarm testing: every seed draws its own subset of faults and workloads and its own rates, because a
mix of everything all the time hides what only a few of them together bring about. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from random import Random

NODE_FAULTS: Final = ("kill", "restart", "pause", "power", "slow_disk", "disk_full", "disk_error")
NET_FAULTS: Final = (
    "cut_pair", "cut_one_way", "isolate", "halves", "ring", "client_cut", "bad_net",
)  # fmt: skip
OPERATIONS: Final = ("reassign", "elect", "transfer_controller", "add_controller")
OTHER_FAULTS: Final = ("clock_jump", "pause_client", "group_flap")
FAULTS: Final = (*NODE_FAULTS, *NET_FAULTS, *OPERATIONS, *OTHER_FAULTS)
WORKLOADS: Final = ("append", "group", "bank", "copy", "table")
PACES: Final = (2, 5, 5, 5, 5, 10, 10, 10)


@dataclass(frozen=True, slots=True)
class SwarmPlan:
    """One run."""

    controllers: int
    brokers: int
    coordinators: int
    flush_policy: str
    """`ack` for those runs in which machines lose power: only it promises to survive that."""
    faults: tuple[str, ...]
    """None at all, sometimes: a healthy cluster has to be right too (F0)."""
    workloads: tuple[str, ...]
    fault_every_s: float
    fault_lasts_s: float
    together_max: int
    """How many faults there may be at a time."""
    warm_up_s: float
    faults_s: float
    quorum_only_s: float
    pace: int
    """How many times slower than on a fast local network messages and disks are, and clients too:
    so a fault meets as much under way at any pace, and a slow run takes less of our time.
    """

    def __str__(self) -> str:
        return (
            f"{self.controllers} controllers, {self.brokers} brokers, "
            f"{self.coordinators} coordinators, flush={self.flush_policy}, pace {self.pace}; "
            f"{', '.join(self.workloads)}; faults: {', '.join(self.faults) or 'none'}, "
            f"one per {self.fault_every_s:.1f} s for {self.fault_lasts_s:.1f} s, "
            f"{self.together_max} together"
        )


def draw(rng: Random) -> SwarmPlan:
    faults = rng.sample(FAULTS, rng.choice((0, 1, 2, 3, 3, 4, 5, 6)))
    flush_policy = "ack" if "power" in faults else rng.choice(("os", "os", "ack"))
    return SwarmPlan(
        controllers=rng.choice((1, 3, 3)),
        brokers=rng.choice((3, 3, 4, 5)),
        coordinators=rng.choice((1, 2)),
        flush_policy=flush_policy,
        faults=tuple(sorted(faults)),
        workloads=tuple(sorted(rng.sample(WORKLOADS, rng.choice((1, 1, 2, 2, 3))))),
        fault_every_s=rng.choice((0.4, 1.0, 2.0)),
        fault_lasts_s=rng.choice((0.3, 1.5, 5.0)),
        together_max=rng.choice((1, 1, 2, 3)),
        warm_up_s=1.0,
        faults_s=rng.uniform(4.0, 12.0),
        quorum_only_s=2.0,
        pace=rng.choice(PACES),
    )
