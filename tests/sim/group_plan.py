"""What one seed does to a group: a swarm draw.

Every seed enables its own random subset of faults at its own rates: a run that does everything
at once hides what a run that does one thing often would find.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from random import Random

FAULTS: Final = (
    "kill member",
    "leave",
    "pause member",
    "break stream",
    "break all streams",
    "failover",
    "slow failover",
    "pause coordinator",
    "compact",
    "double static",
    "subscribe",
    "add partitions",
    "new topic",
    "stuck handler",
    "empty and reset",
)


@dataclass(frozen=True, slots=True)
class Plan:
    """The draw of one seed; times in milliseconds."""

    processes: int
    static: int
    """So many of the processes have an instance id."""
    topics: int
    partitions: int
    assignors: tuple[str, ...]
    duration_ms: int
    faults: tuple[str, ...]
    fault_gap_ms: int
    delay_max_ms: int
    slow_rate: float
    drop_rate: float
    duplicate_rate: float
    commit_max_ms: int
    session_timeout_ms: int
    rebalance_timeout_ms: int
    heartbeat_ms: int
    step_ms: int
    """Between two batches of one consumer."""
    txn_rate: float


def draw_plan(random: Random) -> Plan:
    pick = random.choice
    processes = pick((1, 2, 3, 3, 4, 6))
    session_timeout_ms = pick((1_000, 3_000))
    return Plan(
        processes=processes,
        static=pick((0, 0, 1, processes)),
        topics=pick((1, 1, 2, 3)),
        partitions=pick((1, 2, 4, 6)),
        assignors=pick((("range",), ("roundrobin",), ("sticky",), (), ("own",), ("own", "sticky"))),
        duration_ms=random.randrange(3_000, 12_000),
        faults=tuple(sorted(random.sample(FAULTS, pick((0, 1, 2, 3, 4, 6, 8, 15))))),
        fault_gap_ms=pick((200, 700, 2_000)),
        delay_max_ms=pick((3, 20, 100)),
        slow_rate=pick((0.0, 0.0, 0.02, 0.1)),
        drop_rate=pick((0.0, 0.0, 0.03, 0.1)),
        duplicate_rate=pick((0.0, 0.0, 0.05, 0.2)),
        commit_max_ms=pick((1, 10, 80)),
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=pick((700, 2_000, 6_000)),
        heartbeat_ms=session_timeout_ms // pick((3, 5, 10)),
        step_ms=pick((70, 150, 300)),
        txn_rate=pick((0.0, 0.0, 0.2, 0.6)),
    )
