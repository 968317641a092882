"""Every transcript under testdata, played against its area's environment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.datadriven.group_env import GroupEnv
from tests.datadriven.metadata_env import MetadataEnv
from tests.datadriven.partition_env import PartitionEnv
from tests.datadriven.raft_env import RaftEnv
from tests.datadriven.runner import Block, check_file, parse, play, render
from tests.datadriven.txn_env import TxnEnv

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.datadriven.runner import Environment

TESTDATA = Path(__file__).parent / "testdata"
AREAS: dict[str, Callable[[], Environment]] = {
    "group": GroupEnv,
    "metadata": MetadataEnv,
    "partition": PartitionEnv,
    "raft": RaftEnv,
    "txn": TxnEnv,
}


def transcripts(area: str) -> list[Path]:
    return sorted((TESTDATA / area).glob("*.txt"))


ALL = [(area, path) for area in AREAS for path in transcripts(area)]


@pytest.mark.parametrize(("area", "path"), ALL, ids=[f"{area}/{p.stem}" for area, p in ALL])
def test_transcript(area: str, path: Path) -> None:
    check_file(path, AREAS[area]())


class Echo:
    """An environment that repeats what it hears."""

    def run(self, command: str, arguments: list[str]) -> str:
        return " ".join((command, *arguments))


def test_a_transcript_survives_parsing_and_printing() -> None:
    text = "# why\nsay one\n----\nsay one\n\nsay two\n----\nsay two\n"
    assert render(play(parse(text), Echo())) == text


def test_a_difference_fails_with_a_diff(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUIRO_REWRITE", raising=False)
    path = tmp_path / "wrong.txt"
    path.write_text(Block((), "say one", "say two").text())
    with pytest.raises(AssertionError, match=r"-say two\n\+say one"):
        check_file(path, Echo())


def test_a_command_without_dashes_is_refused() -> None:
    with pytest.raises(ValueError, match="not followed"):
        parse("say one\nsay two\n")
