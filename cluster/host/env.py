"""Everything a role touches of the world, in one place, so that the simulator can replace it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from random import Random

    from suiro.transport.api import Transport

    from cluster.host.clock import Clock
    from cluster.host.fs import Fs
    from cluster.host.metrics import Metrics
    from cluster.host.offload import Offload
    from cluster.host.store import Store


@dataclass(frozen=True, slots=True)
class Env:
    """The clock, the disk, the network and the dice of one node."""

    clock: Clock
    offload: Offload
    fs: Fs
    open_store: Callable[[Path], Store]
    transport: Transport
    rng: Random
    metrics: Metrics
