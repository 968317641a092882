"""What one seed does to transactions: a swarm draw of faults and their rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from random import Random

FAULTS: Final = (
    "coordinator fails",
    "partition fails",
    "producer dies",
    "producer is doubled",
    "producer pauses",
    "operator aborts",
    "broker forgets",
)


@dataclass(frozen=True, slots=True)
class Plan:
    """The draw of one seed; rates are per message, times in milliseconds."""

    partitions: int
    ids: int
    """Transactional ids."""
    queries: int
    """Names of shared transactions."""
    epoch_max: int
    timeout_ms: int
    duration_ms: int
    faults: tuple[str, ...]
    fault_gap_ms: int
    drop_rate: float
    duplicate_rate: float
    slow_rate: float
    slow_ms: int
    late_rate: float
    """Of requests that arrive when nobody remembers them."""
    delay_ms: int
    commit_ms: int
    """How long the coordinator's log takes to commit, at most."""
    replicate_ms: int
    """How long a partition's high watermark lags, at most."""
    abort_rate: float


def draw_plan(random: Random) -> Plan:
    pick, chance = random.choice, random.random
    return Plan(
        partitions=pick((2, 2, 3)),
        ids=pick((1, 1, 2)),
        queries=pick((0, 1, 1)),
        epoch_max=pick((3, 3, 4, 32767)),
        timeout_ms=pick((150, 400, 2000)),
        duration_ms=random.randrange(1500, 4000),
        faults=tuple(fault for fault in FAULTS if chance() < 0.4),
        fault_gap_ms=pick((60, 120, 300)),
        drop_rate=pick((0.0, 0.0, 0.03, 0.12)),
        duplicate_rate=pick((0.0, 0.05, 0.2)),
        slow_rate=pick((0.0, 0.03, 0.1)),
        slow_ms=pick((200, 1000)),
        late_rate=pick((0.0, 0.01, 0.05)),
        delay_ms=pick((2, 5, 15)),
        commit_ms=pick((1, 5, 20)),
        replicate_ms=pick((1, 5, 30)),
        abort_rate=pick((0.1, 0.4)),
    )
