"""Nodes of one kind share a file: who each is comes from its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from suiro.model.errors import InvalidConfig

from cluster.config import NodeConfig

if TYPE_CHECKING:
    from pathlib import Path

SHARED = """
first_node_id = 101
roles = ["controller"]
data_dir = "data"
listen = "0.0.0.0:9750"
"""


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    path = tmp_path / "controller.toml"
    path.write_text(SHARED)
    return path


def test_the_number_in_the_name_counts(shared: Path) -> None:
    over = {"advertise": "controller-2.suiro:9750", "cluster_id": "id"}
    config = NodeConfig.from_toml(shared, name="suiro-controller-2", over=over)
    assert (config.node_id, config.cluster_id) == (103, "id")
    assert str(config.advertised) == "controller-2.suiro:9750"


@pytest.mark.parametrize("name", [None, "", "controller", "controller-x", "2"])
def test_a_name_without_a_number_is_refused(shared: Path, name: str | None) -> None:
    with pytest.raises(InvalidConfig, match="ends in its number"):
        NodeConfig.from_toml(shared, name=name)
