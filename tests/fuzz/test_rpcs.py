"""A short run of the fuzzer of every rpc, on a real node; `make fuzz` runs a long one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fuzz.messages import all_methods
from tests.fuzz.rpcs import fuzz

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
COUNT = 1_200


def test_every_rpc_bears_what_nobody_should_send(tmp_path: Path) -> None:
    result = fuzz(tmp_path, COUNT, seed=1)
    assert result.wrong == []
    assert result.answers.total() > COUNT
    assert sum(n for name, n in result.answers.items() if "error of ours" in name) > COUNT / 3


def test_all_rpcs_are_known() -> None:
    assert len(all_methods()) > 50
