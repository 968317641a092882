"""A client's memory stays within what its settings say, whatever waits for it or fails it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cluster.sdk_memory import run_both

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(90)]

PER_BUFFERED_BYTE = 4
"""A Python object, and what encodes it, for each byte that is counted."""


def test_memory_is_bounded_and_the_error_names_the_cause(tmp_path: Path) -> None:
    figures = run_both(tmp_path, megabytes=150)
    for name, found in figures.items():
        assert found.handled > 0
        assert found.growth_mb < PER_BUFFERED_BYTE * found.bound_mb, name
    error = figures["a producer without brokers"].error
    assert error.startswith("DeliveryTimedOut: ")
    assert "127.0.0.1" in error, "it says who could not be reached"
