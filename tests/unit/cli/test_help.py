"""Every command shows how it is used, and every one that shows data can show it to a program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import typer.main
from suiro.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Iterator

ACTIONS = {
    "bundle", "before-stop", "format", "probe", "run", "up", "down", "produce", "consume",
    "completion", "create", "alter", "delete", "trim", "add-partitions", "add", "use", "rm",
    "remove", "transfer", "execute", "throttle", "cancel", "drain", "dump", "shell", "random-uuid",
    "reset", "abort", "set", "move",
}  # fmt: skip
"""Commands that do something, or print what has a form of its own."""


def commands(group: Any, path: str = "suiro") -> Iterator[tuple[str, Any]]:
    found = getattr(group, "commands", None)
    if found is None:
        yield path, group
        return
    for name, command in found.items():
        yield from commands(command, f"{path} {name}")


EVERY = dict(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("path", EVERY)
def test_a_command_has_an_example(path: str) -> None:
    _, example, shown = (EVERY[path].help or "").partition("Example: ")
    assert example, path
    assert path in shown


@pytest.mark.parametrize("path", [p for p in EVERY if p.split()[-1] not in ACTIONS])
def test_what_a_command_shows_a_program_can_read(path: str) -> None:
    options = {name for parameter in EVERY[path].params for name in parameter.opts}
    assert "--output" in options, path
