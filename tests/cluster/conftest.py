"""One node for the tests of a module, where they do not harm it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cluster.harness import SingleNode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SingleNode]:
    with SingleNode(tmp_path_factory.mktemp("node")) as running:
        yield running


@pytest.fixture
def own_node(tmp_path: Path) -> Iterator[SingleNode]:
    """A node that a test may kill."""
    node = SingleNode(tmp_path)
    try:
        node.start()
        yield node
    finally:
        node.kill()
