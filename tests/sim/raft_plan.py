"""What one seed does to a quorum: a swarm draw.

Every seed enables its own random subset of faults at its own rates: a run that does everything
at once hides what a run that does one thing often would find.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cluster.controller_quorum.raft_state import RaftConfig

if TYPE_CHECKING:
    from random import Random

TICK: Final = 10
"""Units of simulated time per tick of a member's clock."""

FAULTS: Final = (
    "crash one",
    "crash leader",
    "crash all",
    "isolate leader",
    "isolate one",
    "split",
    "one way",
    "bridge",
    "pause",
    "transfer",
    "wipe",
    "compact",
    "burst",
)


@dataclass(frozen=True, slots=True)
class Plan:
    """The draw of one seed; rates are per message, gaps in units of time."""

    voters: int
    config: RaftConfig
    duration: int
    faults: tuple[str, ...]
    fault_gap: int
    operator_gap: int
    """Between two steps of an operator who changes the membership; 0 for none."""
    drop_rate: float
    duplicate_rate: float
    slow_rate: float
    delay_max: int
    write_max: int
    propose_gap: int
    read_gap: int
    is_skewed: bool
    """The members' clocks run at different speeds."""
    quorum_first: bool
    """After the faults, only a random quorum comes up at first."""


def draw_plan(random: Random) -> Plan:
    pick, chance = random.choice, random.random
    config = RaftConfig(
        election_ticks=pick((4, 5, 6)),
        heartbeat_ticks=pick((1, 2)),
        append_bytes_max=pick((60, 200, 2000)),
        appends_in_flight_max=pick((1, 2, 6)),
        chunk_bytes_max=pick((20, 40, 100)),
        reads_max=20,
        uncommitted_entries_max=60,
        trailing_entries=pick((0, 0, 3)),
        announce_commits=pick((False, True)),
    )
    faults = tuple(fault for fault in FAULTS if chance() < 0.4)
    return Plan(
        voters=pick((3, 3, 3, 3, 3, 4, 5, 5, 2, 1)),
        config=config,
        duration=random.randrange(500, 1300),
        faults=faults,
        fault_gap=pick((20, 40, 70, 120)),
        operator_gap=pick((0, 0, 25, 60)),
        drop_rate=pick((0.0, 0.0, 0.02, 0.1, 0.25)),
        duplicate_rate=pick((0.0, 0.0, 0.02, 0.1)),
        slow_rate=pick((0.0, 0.0, 0.02, 0.1)),
        delay_max=pick((2, 4, 12)),
        write_max=pick((0, 0, 3, 10)),
        propose_gap=pick((10, 20, 40)),
        read_gap=pick((30, 60, 120)),
        is_skewed=chance() < 0.25,
        quorum_first=chance() < 0.4,
    )
