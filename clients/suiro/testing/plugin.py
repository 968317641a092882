"""Fixtures for pytest, found by it without being imported: pyproject's entry point `pytest11`.

`suiro_cluster` is a cluster of the test's own, which it may harm; `@pytest.mark.suiro(brokers=3)`
says how large. `suiro_shared_cluster` is one broker for all tests that do no harm to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suiro.testing.cluster import Cluster


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "suiro(brokers=1): how large the suiro_cluster fixture is")


@pytest.fixture
def suiro_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A real cluster that is gone after the test."""
    from suiro.testing.cluster import Cluster  # pytest loads this file also where nobody uses it

    marker = request.node.get_closest_marker("suiro")
    with Cluster(**(marker.kwargs if marker else {})) as running:
        yield running


@pytest.fixture(scope="session")
def suiro_shared_cluster() -> Iterator[Cluster]:
    """A real cluster that lives as long as the test session."""
    from suiro.testing.cluster import Cluster

    with Cluster() as running:
        yield running
