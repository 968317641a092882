"""What a client touches of the world, in one place, so that the simulator can replace it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suiro.wall_clock import wall_clock_ms

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from suiro.transport.api import Transport


@dataclass(frozen=True, slots=True)
class ClientEnv:
    """The network, the dice and the wall clock of one client."""

    transport: Transport
    rng: Random
    now_ms: Callable[[], int]


def real_env() -> ClientEnv:
    """gRPC, real chance, real time; inside a running loop."""
    from suiro.transport.grpc_transport import GrpcTransport
    from suiro.transport.trace import begun

    return ClientEnv(GrpcTransport(request_metadata=begun), random.Random(), wall_clock_ms)
