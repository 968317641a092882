"""Looks from the driver whether there is something to write to.

Tasks would notice too, each after a long wait and several tries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from suiro.client_env import real_env
from suiro.connection import Connection
from suiro.loop_thread import LoopThread
from suiro.model.errors import TimedOut, Unavailable
from suiro.settings import parse_bootstrap

from pyspark_suiro.checkpoint import has_written
from pyspark_suiro.errors import no_answer
from pyspark_suiro.options import DRIVER_TIMEOUT_MS

if TYPE_CHECKING:
    from pyspark_suiro.sink_options import SinkOptions

CLIENT_ID: Final = "spark"


def check_target(options: SinkOptions) -> None:
    """Raises what the tasks would: nobody answers, or the topic is not there and may not be made.

    A query whose checkpoint shows that it has written before is not asked again for every batch.
    """
    if not has_written(options.checkpoint):
        loop = LoopThread()
        try:
            loop.run(_ask(options))
        finally:
            loop.close()


async def _ask(options: SinkOptions) -> None:
    bootstrap = parse_bootstrap(options.bootstrap)
    env = real_env()
    connection = Connection(
        bootstrap, env.transport, client_id=CLIENT_ID, rng=env.rng, create_missing=True
    )
    topics = [options.topic] if options.topic else []
    timeout_ms = dict(options.client).get("request.timeout.ms", DRIVER_TIMEOUT_MS)
    try:
        await connection.refresh(topics, timeout_s=timeout_ms / 1000)
    except (Unavailable, TimedOut) as error:
        raise no_answer(bootstrap, error) from None
    finally:
        await env.transport.close()
