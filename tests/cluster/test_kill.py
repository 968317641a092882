"""kill -9 of a node in the middle of a produce loop: nothing acknowledged is lost or torn."""

from __future__ import annotations

import random
import threading
import time
from typing import TYPE_CHECKING

import pytest
import suiro
from suiro import SuiroError

if TYPE_CHECKING:
    from tests.cluster.harness import SingleNode

pytestmark = pytest.mark.cluster

KILLS = 8


@pytest.mark.parametrize("flush", ["ack", "os"])
@pytest.mark.timeout(240)
def test_nothing_acknowledged_is_lost(own_node: SingleNode, flush: str) -> None:
    with suiro.Admin(own_node.bootstrap) as admin:
        admin.create_topic("log", configs={"flush.policy": flush})
    dice = random.Random(flush)
    acked: dict[int, bytes] = {}
    sent = 0
    for life in range(KILLS):
        sent = _produce_until_killed(own_node, acked, sent, dice.uniform(0.02, 0.4))
        own_node.start()
        log = _read_log(own_node)
        _check(log, acked, life)
    assert len(acked) > KILLS, "the test must have acknowledged something to mean anything"
    print(f"flush={flush}: {KILLS} kills, {sent} sent, {len(acked)} acknowledged, 0 lost")


def _produce_until_killed(
    node: SingleNode, acked: dict[int, bytes], sent: int, after_s: float
) -> int:
    """Send until the node is gone; what was acknowledged goes into `acked` by offset."""
    killer = threading.Timer(after_s, node.kill)
    handles = []
    producer = suiro.Producer(node.bootstrap, delivery_timeout_ms=300, linger_ms=1)
    killer.start()
    while killer.is_alive():
        value = b"record %d of this test" % sent
        handles.append((value, producer.send("log", value)))
        sent += 1
        if sent % 50 == 0:
            time.sleep(0.001)  # the rate is what is tested, not how fast a buffer fills
    killer.join()
    producer.close()
    for value, handle in handles:
        try:
            acked[handle.result(10).offset] = value
        except SuiroError:
            continue  # not acknowledged: it may be there or not
    return sent


def _read_log(node: SingleNode) -> list[tuple[int, bytes | None]]:
    where = suiro.TopicPartition("log", 0)
    with suiro.Consumer(node.bootstrap, auto_offset_reset="earliest") as consumer:
        end = consumer.offset_of(where, suiro.Bound.LATEST)
        consumer.assign([where])
        log: list[tuple[int, bytes | None]] = []
        while len(log) < end:
            polled = consumer.poll(10, max_records=10_000)
            assert polled, f"{len(log)} records came, the log ends at {end}"
            log += [(record.offset, record.value) for record in polled]
    return log


def _check(log: list[tuple[int, bytes | None]], acked: dict[int, bytes], life: int) -> None:
    assert [offset for offset, _ in log] == list(range(len(log))), "offsets have a hole"
    for offset, value in acked.items():
        assert offset < len(log), f"life {life}: acknowledged offset {offset} is gone"
        assert log[offset][1] == value, f"life {life}: another value at offset {offset}"
