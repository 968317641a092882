"""A node as a process: the real world behind `Env`, signals, logging, the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import signal
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from suiro.loop_thread import new_loop
from suiro.transport.grpc_transport import GrpcTransport

from cluster.host.clock import SystemClock
from cluster.host.env import Env
from cluster.host.events import FileEvents
from cluster.host.fs import OsFs
from cluster.host.logs import set_up_logging
from cluster.host.metrics import Metrics
from cluster.host.offload import Inline, Threads
from cluster.host.server import Server
from cluster.host.spans import Spans
from cluster.host.store import RocksStore
from cluster.node import Node

if TYPE_CHECKING:
    from collections.abc import Callable

    from cluster.config import NodeConfig

THREADS: Final = 4


def run_node(config: NodeConfig, on_ready: Callable[[], None] | None = None) -> None:
    """Run a node until SIGTERM or SIGINT, then stop it in order."""
    if not __debug__:
        sys.exit("suiro: assertions are part of how a node protects data; do not run it with -O")
    set_up_logging(config.log_format, config.log_level)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(serve(config, on_ready))


async def serve(config: NodeConfig, on_ready: Callable[[], None] | None = None) -> None:
    """Run one node in this loop; the first signal stops it, a second one kills it."""
    threads = Threads("suiro-io", THREADS)
    env = real_env(threads)
    if config.event_log is not None:
        events = FileEvents(config.event_log, config.node_id, env.clock)
        env = replace(env, events=events)
    if config.traces_to:
        env = _traced(env, Spans(config.traces_to, config.node_id, config.roles))
    node = Node(config, env)
    running = asyncio.create_task(node.run(), name="node")
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, _stop, loop, running)
    ready = asyncio.create_task(node.ready.wait(), name="ready")
    try:
        await asyncio.wait([running, ready], return_when=asyncio.FIRST_COMPLETED)
        if ready.done() and on_ready is not None:
            on_ready()
        with contextlib.suppress(asyncio.CancelledError):
            await running
    finally:
        ready.cancel()
        threads.close()
        env.events.close()
        if env.spans is not None:
            env.spans.close()
    logging.getLogger("suiro.node").info("node %d has stopped", config.node_id)


def real_env(threads: Threads) -> Env:
    """The clock, the disk, the network and the dice of this machine."""
    metrics = Metrics()
    return Env(
        clock=SystemClock(),
        offload=threads,
        store_offload=Inline(),
        fs=OsFs(),
        open_store=RocksStore,
        transport=GrpcTransport(),
        rng=random.SystemRandom(),
        metrics=metrics,
        make_server=lambda services: Server(services, metrics),
    )


def _traced(env: Env, spans: Spans) -> Env:
    return replace(
        env,
        spans=spans,
        make_server=lambda services: Server(services, env.metrics, spans=spans),
    )


def _stop(loop: asyncio.AbstractEventLoop, running: asyncio.Task[None]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.remove_signal_handler(number)
    running.cancel()
