"""What real controllers say about themselves over HTTP, before and after their leader is killed."""

from __future__ import annotations

import asyncio
import re
import urllib.request
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.cluster.quorum_harness import (
    ControllerProcess,
    MetadataClient,
    RealQuorum,
    paper_broker,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

Page = dict[str, float]

EXPECTED = {
    "suiro_active_controllers",
    "suiro_brokers_active",
    "suiro_brokers_fenced",
    "suiro_quorum_elections_total",
    "suiro_quorum_election_seconds_sum",
    "suiro_quorum_election_seconds_count",
    "suiro_quorum_election_seconds_max",
    "suiro_quorum_commit_seconds_count",
    "suiro_quorum_sync_seconds_count",
    "suiro_quorum_log_end",
    "suiro_quorum_snapshot_age_seconds",
}


def read_page(url: str) -> Page:
    with urllib.request.urlopen(url, timeout=5) as reply:
        text = reply.read().decode()
    return {
        sample.name: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.labels
    }


async def page_of(node: ControllerProcess) -> Page:
    address = re.findall(r"metrics are at (http://\S+)", node.log_path.read_text())[-1]
    return await asyncio.to_thread(read_page, address)


async def pages_when(
    quorum: RealQuorum, are_right: Callable[[dict[int, Page]], bool]
) -> dict[int, Page]:
    """The pages of those who are up, once they are as they should be or 10 s have passed."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + 10
    while True:
        pages = {n: await page_of(node) for n, node in quorum.nodes.items() if node.is_up}
        if are_right(pages) or loop.time() > deadline_s:
            return pages
        await asyncio.sleep(0.05)


def total(pages: dict[int, Page], name: str) -> float:
    return sum(page[name] for page in pages.values())


async def test_the_pages_before_and_after_a_failover(tmp_path: Path) -> None:
    quorum = RealQuorum(tmp_path, 3, metrics_port=0)
    try:
        await quorum.caught_up()
        first = await quorum.leader()
        async with paper_broker(quorum):
            client = MetadataClient(quorum, "client")
            await client.begin()
            pages = await pages_when(
                quorum,
                lambda pages: (
                    total(pages, "suiro_brokers_active") == 3
                    and len({page["suiro_quorum_log_end"] for page in pages.values()}) == 1
                ),
            )
            for page in pages.values():
                assert page.keys() >= EXPECTED
                assert page["suiro_brokers_active"] == 1
                assert page["suiro_brokers_fenced"] == 0
                assert 0 <= page["suiro_quorum_snapshot_age_seconds"] < 60
            assert len({page["suiro_quorum_log_end"] for page in pages.values()}) == 1
            assert total(pages, "suiro_active_controllers") == 1
            leading = pages[first.node_id]
            assert leading["suiro_active_controllers"] == 1
            assert leading["suiro_quorum_commit_seconds_count"] >= 3  # register, unfence, create
            before = {n: page["suiro_quorum_elections_total"] for n, page in pages.items()}

            first.kill()
            await client.change()
            pages = await pages_when(
                quorum, lambda pages: total(pages, "suiro_active_controllers") == 1
            )
            assert total(pages, "suiro_active_controllers") == 1
            for n, page in pages.items():
                assert page["suiro_quorum_elections_total"] > before[n]
                elections = page["suiro_quorum_election_seconds_count"]
                average = page["suiro_quorum_election_seconds_sum"] / elections
                assert 0 < average <= page["suiro_quorum_election_seconds_max"] < 10
        pages = await pages_when(quorum, lambda p: total(p, "suiro_brokers_fenced") == 2)
        assert [page["suiro_brokers_fenced"] for page in pages.values()] == [1, 1]
        assert [page["suiro_brokers_active"] for page in pages.values()] == [0, 0]
    finally:
        await quorum.close()
