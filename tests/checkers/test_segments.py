"""The independent segment reader against the product's files, and against damaged ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from suiro.model.encode import encode_lists
from suiro.model.ids import LeaderEpoch, TopicId, TopicPartition

from cluster.host.fs import OsFs
from cluster.log.config import LogConfig
from cluster.log.home import LogHome
from cluster.log.partition_log import PartitionLog
from tests.checkers.segments import BadSegment, below, chain, differences, epoch_starts, read_log
from tests.unit.log.kit import TracedStore

if TYPE_CHECKING:
    from pathlib import Path

WHERE = TopicPartition("t", 0)


def write(root: Path, values: list[list[bytes | None]]) -> Path:
    """A log with one batch for each list, each in its own epoch, in several segments."""
    home = LogHome(OsFs(), TracedStore(), root, WHERE, TopicId(b"t" * 16))
    config = LogConfig(segment_bytes=400)
    log = PartitionLog.open(home, config, now_ms=0, discard=lambda work: work())
    for epoch, some in enumerate(values):
        keys: list[bytes | None] = [b"k%d" % i for i in range(len(some))]
        raw = encode_lists(keys, some, timestamps_ms=[10 * i for i in range(len(some))])
        log.append_as_leader(raw, LeaderEpoch(epoch), 0)
    log.close()
    return root / str(WHERE)


VALUES: list[list[bytes | None]] = [
    [b"one", None, b"three"],
    [b"x" * 300],
    [None, None],
    [b"", b"y" * 70_000],
]


def test_it_reads_what_the_product_wrote(tmp_path: Path) -> None:
    batches = read_log(write(tmp_path, VALUES))
    assert [batch.values() for batch in batches] == VALUES
    assert epoch_starts(batches) == {0: 0, 1: 3, 2: 4, 3: 6}
    assert len(list((tmp_path / "t-0").glob("*.log"))) > 1


def test_equal_logs_are_equal(tmp_path: Path) -> None:
    one, two = (read_log(write(tmp_path / name, VALUES)) for name in "ab")
    assert chain(one) == chain(two)
    assert differences({"a": one, "b": two}, 8) == []


def test_other_bytes_are_found(tmp_path: Path) -> None:
    other = [*VALUES[:2], [b"?", None], VALUES[3]]
    one, two = read_log(write(tmp_path / "a", VALUES)), read_log(write(tmp_path / "b", other))
    assert differences({"a": one, "b": two}, 8) == ["a and b differ at 4"]
    assert differences({"a": one, "b": two}, 4) == []
    assert differences({"a": one, "b": below(one, 4)}, 8) == ["a and b differ at their end"]
    assert differences({"a": below(one, 4), "b": below(one, 4)}, 8) == ["a ends at 4, not at 8"]


@pytest.mark.parametrize("at", [3, 16, 30, 100])
def test_a_damaged_file_is_refused(tmp_path: Path, at: int) -> None:
    path = min(write(tmp_path, VALUES).glob("*.log"))
    data = bytearray(path.read_bytes())
    data[at] ^= 0x40
    path.write_bytes(data)
    with pytest.raises(BadSegment):
        read_log(path.parent)


def test_a_torn_file_is_refused(tmp_path: Path) -> None:
    path = min(write(tmp_path, VALUES).glob("*.log"))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(BadSegment):
        read_log(path.parent)
