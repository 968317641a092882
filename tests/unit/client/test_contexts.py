"""Named clusters: what counts where nothing is said, and what a wrong name is told."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from suiro import cli
from suiro.contexts import contexts_path, load_contexts
from suiro.model.errors import InvalidSetting
from suiro.model.ids import Address
from suiro.settings import DEFAULT_PORT, parse_bootstrap

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("SUIRO", "SUIRO_CONTEXT"):
        monkeypatch.setenv(name, "")


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["suiro", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def test_the_order_of_what_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parse_bootstrap() == (Address("127.0.0.1", DEFAULT_PORT),)
    assert run(monkeypatch, "context", "add", "first", "suiro://one:1") == 0
    assert run(monkeypatch, "context", "add", "second", "suiro://two:2,three") == 0
    assert parse_bootstrap() == (Address("one", 1),), "the first is the current one"
    assert run(monkeypatch, "context", "use", "second") == 0
    assert parse_bootstrap() == (Address("two", 2), Address("three", DEFAULT_PORT))
    monkeypatch.setenv("SUIRO_CONTEXT", "first")
    assert parse_bootstrap() == (Address("one", 1),)
    monkeypatch.setenv("SUIRO", "four:4")
    assert parse_bootstrap() == (Address("four", 4),)
    assert parse_bootstrap("five:5") == (Address("five", 5),)


@pytest.mark.parametrize("option", [["--context", "prod"], ["--context=prod"]])
def test_every_command_takes_a_context(
    option: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, "context", "add", "prod", "suiro://127.0.0.1:1")
    monkeypatch.setenv("SUIRO", "suiro://elsewhere:2")
    assert run(monkeypatch, "context", "ls", *option) == 0
    assert "*  prod  suiro://127.0.0.1:1" in capsys.readouterr().out
    assert parse_bootstrap() == (Address("127.0.0.1", 1),)


def test_wrong_names_and_files(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, "context", "add", "production", "suiro://one:1")
    assert run(monkeypatch, "context", "use", "prodution") == 1
    assert "did you mean 'production'?" in capsys.readouterr().err
    assert run(monkeypatch, "context", "add", "a b", "one:1") == 1
    assert run(monkeypatch, "context", "add", "bad", "one:port") == 1
    assert load_contexts().bootstraps == {"production": "suiro://one:1"}
    assert run(monkeypatch, "context", "rm", "production") == 0
    assert (load_contexts().current, load_contexts().bootstraps) == ("", {})
    contexts_path().write_text("current = [")
    with pytest.raises(InvalidSetting, match=r"contexts\.toml cannot be read"):
        parse_bootstrap()
