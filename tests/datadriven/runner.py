"""Transcripts: a command, a line of dashes, and what it must print.

    # A comment tells the story.
    propose 1 a b
    ----
    1 appends 2.1, 3.1

A blank line ends the expected output. `SUIRO_REWRITE=1` writes what was printed into the file
instead of comparing; read the diff before committing it.
"""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

DASHES = "----"


class Environment(Protocol):
    """One area's commands; state lives as long as one transcript."""

    def run(self, command: str, arguments: list[str]) -> str: ...


@dataclass(frozen=True, slots=True)
class Block:
    """One command with the comments before it and the output after it."""

    comments: tuple[str, ...]
    command: str
    expected: str

    def text(self) -> str:
        output = f"{self.expected}\n" if self.expected else ""
        return "\n".join((*self.comments, self.command, DASHES)) + f"\n{output}"


def parse(text: str) -> list[Block]:
    """Split a transcript; ValueError for a command without its dashes."""
    blocks = []
    lines = iter(text.splitlines())
    comments: list[str] = []
    for line in lines:
        if not line.strip():
            if comments:
                comments.append("")
            continue
        if line.startswith("#"):
            comments.append(line)
            continue
        if next(lines, "") != DASHES:
            raise ValueError(f"{line!r} is not followed by {DASHES}")
        expected = []
        for output in lines:
            if not output.strip():
                break
            expected.append(output)
        blocks.append(Block(tuple(comments), line, "\n".join(expected)))
        comments = []
    return blocks


def play(blocks: list[Block], environment: Environment) -> list[Block]:
    """The same blocks with what the environment printed."""
    played = []
    for block in blocks:
        name, *arguments = block.command.split()
        printed = environment.run(name, arguments)
        played.append(Block(block.comments, block.command, printed.rstrip("\n")))
    return played


def render(blocks: list[Block]) -> str:
    return "\n".join(block.text() for block in blocks)


def check_file(path: Path, environment: Environment) -> None:
    """Play a transcript; a difference fails with a diff, or is written down if asked for."""
    blocks = parse(path.read_text())
    played = play(blocks, environment)
    if os.environ.get("SUIRO_REWRITE"):
        path.write_text(render(played))
        return
    before, after = render(blocks).splitlines(), render(played).splitlines()
    diff = "\n".join(difflib.unified_diff(before, after, "expected", "printed", lineterm=""))
    assert not diff, f"{path.name} went another way\n{diff}"
