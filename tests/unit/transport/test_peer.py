"""What a caller's address says about where it is."""

from __future__ import annotations

import pytest
from suiro.transport.api import Peer


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("ipv4:10.0.0.7:4711", "10.0.0.7"),
        ("ipv6:%5B::1%5D:4711", "::1"),
        ("unix:/tmp/suiro", "/tmp/suiro"),
        ("sim:m1", "m1"),
        ("somewhere", "somewhere"),
    ],
)
def test_the_machine_without_its_port(address: str, host: str) -> None:
    assert Peer(address).host == host
