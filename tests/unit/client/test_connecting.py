"""Connecting to nothing, or to something that hangs, ends in time and names the addresses."""

from __future__ import annotations

import socket
import time

import pytest
import suiro
from suiro.model.errors import TimedOut, Unavailable


def test_nobody_is_there() -> None:
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1:.*127\.0\.0\.1:2:.*suiro up"):
        suiro.Consumer("suiro://127.0.0.1:1,127.0.0.1:2", request_timeout_ms=3_000)


def test_somebody_is_there_and_says_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        start = time.monotonic()
        with pytest.raises((TimedOut, Unavailable), match=address):
            suiro.Producer(address, request_timeout_ms=500)
        assert time.monotonic() - start < 4, "gives up at its own deadline, not at the network's"
