"""Bytes written once are read for ever, and today's codec still writes the same."""

from __future__ import annotations

import pytest
from suiro.model.batch import Compression
from suiro.model.columns import decode
from suiro.model.control import decode_marker

from tests.golden.cases import CASES, DIRECTORY, path_of
from tests.unit.model import slow_twin
from tests.unit.model.rows import rows_of


@pytest.mark.parametrize("name", CASES)
def test_a_golden_batch_reads_as_it_was_written(name: str) -> None:
    case, golden = CASES[name], path_of(name).read_bytes()
    columns = decode(golden)
    assert rows_of(columns) == slow_twin.decode(golden)[1] == case.expected()
    assert columns.header.producer_id == case.options.producer_id
    assert columns.header.compression is case.options.compression
    if case.marker is not None:
        assert decode_marker(golden) == case.marker


@pytest.mark.parametrize("name", CASES)
def test_the_codec_still_writes_golden_bytes(name: str) -> None:
    case, golden = CASES[name], path_of(name).read_bytes()
    if case.options.compression is Compression.NONE:
        assert case.build() == golden
    else:  # a compressor's next version may pack better; what it packs may not change
        assert rows_of(decode(case.build())) == rows_of(decode(golden))
        assert len(golden) < sum(len(row.value or b"") for row in case.rows)


def test_every_golden_file_has_its_case() -> None:
    assert {path.name for path in DIRECTORY.glob("*.batch")} == {
        path_of(name).name for name in CASES
    }
