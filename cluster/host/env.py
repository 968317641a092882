"""Everything a role touches of the world, in one place, so that the simulator can replace it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from cluster.host.events import NO_EVENTS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from random import Random

    from suiro.model.ids import Address
    from suiro.transport.api import Service, Transport

    from cluster.host.clock import Clock
    from cluster.host.events import Events
    from cluster.host.fs import Fs
    from cluster.host.metrics import Metrics
    from cluster.host.offload import Offload
    from cluster.host.spans import Spans
    from cluster.host.store import Store


class Serving(Protocol):
    """The serving side of a node."""

    async def start(self, listen: Address) -> int:
        """Listen and serve; the port, which is a free one if port 0 was asked for."""

    async def set_serving(self, serving: bool) -> None:
        """What the health check answers."""

    async def stop(self, grace_s: float) -> None:
        """Refuse new calls at once, give open ones `grace_s` to end."""


@dataclass(frozen=True, slots=True)
class Env:
    """The clock, the disk, the network and the dice of one node."""

    clock: Clock
    offload: Offload
    store_offload: Offload
    """For writes to a `Store`: see `Inline`."""
    fs: Fs
    open_store: Callable[[Path], Store]
    transport: Transport
    rng: Random
    metrics: Metrics
    make_server: Callable[[Sequence[Service]], Serving]
    events: Events = NO_EVENTS
    spans: Spans | None = None
    """None: nothing is traced."""
