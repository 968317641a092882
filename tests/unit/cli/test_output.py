"""`-o yaml` says the same as `-o json`: a YAML reader gets the very data back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import yaml
from hypothesis import given
from hypothesis import strategies as st
from suiro.cli.output import plain_data, printed, yaml_lines
from suiro.cli.progress import bar
from suiro.model.batch import Compression
from suiro.model.ids import NodeId, TopicPartition

if TYPE_CHECKING:
    import pytest

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SCALARS = st.none() | st.booleans() | st.integers() | TEXT
DATA = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3)
)


@given(DATA)
def test_yaml_is_read_back(data: object) -> None:
    assert yaml.safe_load("\n".join(yaml_lines(data))) == data


def test_block_style() -> None:
    data = {"nodes": [{"id": 1, "roles": ["broker"]}, {"id": 2, "roles": []}], "well": True}
    assert list(yaml_lines(data)) == [
        "nodes:",
        "  - id: 1",
        "    roles:",
        '      - "broker"',
        "  - id: 2",
        "    roles: []",
        "well: true",
    ]


@dataclass
class Thing:
    where: TopicPartition
    codec: Compression
    nodes: frozenset[NodeId]
    raw: bytes
    more: tuple[object, ...]


def test_what_is_printed_is_plain() -> None:
    thing = Thing(
        TopicPartition("a", 1),
        Compression.ZSTD,
        frozenset([NodeId(2), NodeId(1)]),
        b"\x01",
        (None,),
    )
    assert plain_data(thing) == {
        "where": {"topic": "a", "partition": 1},
        "codec": "zstd",
        "nodes": [1, 2],
        "raw": "01",
        "more": [None],
    }


def test_a_person_gets_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert not printed("table", {"a": 1})
    assert printed("json", {"a": 1})
    assert printed("yaml", {"a": 1})
    assert capsys.readouterr().out == '{\n "a": 1\n}\na: 1\n'


def test_a_bar_is_full_at_the_end() -> None:
    assert bar("read", 0, 4) == f"read [{'-' * 30}] 0/4"
    assert bar("read", 2, 4, "1 MB/s") == f"read [{'#' * 15}{'-' * 15}] 2/4 1 MB/s"
    assert bar("read", 5, 4).count("#") == bar("read", 0, 0).count("#") == 30
