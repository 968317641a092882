"""What one seed does to a partition: a swarm draw.

Every seed enables its own random subset of faults at its own rates: a run that does everything
at once hides what a run that does one thing often would find.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from random import Random

FAULTS: Final = (
    "kill one",
    "kill leader",
    "kill all",
    "power one",
    "power leader",
    "power some",
    "wipe",
    "restart",
    "pause one",
    "pause leader",
    "isolate one",
    "isolate leader",
    "one way",
    "from controller",
    "split",
    "break stream",
    "break session",
    "failover",
    "slow feed",
    "elect",
    "reassign",
    "cancel",
    "trim",
)


@dataclass(frozen=True, slots=True)
class Plan:
    """The draw of one seed; times in milliseconds."""

    brokers: int
    replicas: int
    min_isr: int
    syncs_first: bool
    """flush=ack: held is synced. Otherwise flush=os."""
    allows_unclean: bool
    duration_ms: int
    faults: tuple[str, ...]
    fault_gap_ms: int
    heal_ms: int
    delay_max_ms: int
    slow_rate: float
    drop_rate: float
    lag_time_max_ms: int
    part_records_max: int
    produce_gap_ms: int
    poll_gap_ms: int
    all_producers: int
    one_producers: int


def draw_plan(random: Random) -> Plan:
    pick, chance = random.choice, random.random
    brokers = pick((3, 3, 4, 5))
    replicas = pick((2, 3, 3, 3)) if brokers < 5 else pick((3, 4))
    faults = tuple(sorted(random.sample(FAULTS, pick((0, 1, 2, 3, 4, 6, 8, 12)))))
    return Plan(
        brokers=brokers,
        replicas=replicas,
        min_isr=random.randrange(1, replicas + 1) if chance() < 0.7 else 1,
        syncs_first=chance() < 0.5,
        allows_unclean=chance() < 0.15,
        duration_ms=random.randrange(6_000, 24_000),
        faults=faults,
        fault_gap_ms=pick((300, 1_000, 3_000)),
        heal_ms=pick((500, 2_000, 6_000)),
        delay_max_ms=pick((3, 20, 100)),
        slow_rate=pick((0.0, 0.0, 0.01, 0.05)),
        drop_rate=pick((0.0, 0.0, 0.02)),
        lag_time_max_ms=pick((3_500, 5_000, 10_000)),
        part_records_max=pick((1, 3, 50)),
        produce_gap_ms=pick((60, 200, 600)),
        poll_gap_ms=pick((150, 500)),
        all_producers=pick((1, 2, 3)),
        one_producers=pick((0, 0, 1)),
    )
