"""No command without a line in the table of what works and what fails on a real cluster."""

from __future__ import annotations

from tests.cluster import test_cli_table
from tests.cluster.cli_table import FAILS, IN_A_STORY, WORKS
from tests.unit.cli.test_help import EVERY

COMMANDS = {path.removeprefix("suiro ") for path in EVERY}


def test_every_command_is_shown_to_work() -> None:
    assert {*WORKS, *IN_A_STORY} == COMMANDS
    assert not WORKS.keys() & IN_A_STORY.keys()


def test_every_command_is_shown_to_fail() -> None:
    assert FAILS.keys() == COMMANDS
    assert all(code for _, code, _ in FAILS.values())


def test_the_stories_are_there() -> None:
    assert all(callable(getattr(test_cli_table, name)) for name in IN_A_STORY.values())
