"""README's first ten minutes, as somebody new would live them: every command and program in its
order, in an empty folder, and what is printed is what README says.

Only the port is another than the one README names, and the package is installed already.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cluster.harness import free_port

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]

ROOT = Path(__file__).parents[2]
SECTION = "## The first ten minutes"
BLOCK = re.compile(r"^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = "-- block"
ANYTHING = "..."


class Step(NamedTuple):
    """A block of code, and the text that is said to come of it, if README says."""

    kind: str
    code: str
    said: str | None


def steps() -> list[Step]:
    section = (ROOT / "README.md").read_text().split(SECTION)[1].split("\n## ")[0]
    blocks = [(found["kind"], found["text"]) for found in BLOCK.finditer(section)]
    after = [*blocks[1:], ("", "")]
    return [
        Step(kind, text, following[1] if following[0] == "text" else None)
        for (kind, text), following in zip(blocks, after, strict=True)
        if kind != "text"
    ]


def test_the_first_ten_minutes(tmp_path: Path) -> None:
    _check_out(tmp_path)
    port = free_port()
    known = {name: value for name, value in os.environ.items() if not name.startswith("SUIRO")}
    here = {"SUIRO_PORT": str(port), "SUIRO": f"suiro://127.0.0.1:{port}", "HOME": str(tmp_path)}
    try:
        ran = subprocess.run(
            ["bash", "-e"], input=_script(tmp_path), cwd=tmp_path, env=known | here,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False,
        )  # fmt: skip
    finally:
        subprocess.run(["make", "-s", "down"], cwd=tmp_path, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stdout
    printed = ran.stdout.split(f"{MARK}\n")[1:]
    assert len(printed) == len(steps())
    for step, text in zip(steps(), printed, strict=True):
        if step.said is not None:
            assert _matches(step.said, text), f"{step.code}\nREADME says\n{step.said}\nnot\n{text}"


def test_the_section_has_all_that_a_new_user_tries() -> None:
    code = "".join(step.code for step in steps())
    for wanted in ("make up", "suiro produce", "suiro consume", "to_pandas", "except", "make down"):
        assert wanted in code


def _check_out(folder: Path) -> None:
    """What `make` needs to find; the environment of these tests is the one that is installed."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        (folder / name).symlink_to(ROOT / name)
    environment = folder / ".venv"
    environment.mkdir()
    for path in Path(sys.prefix).iterdir():
        if path.name != ".ready":
            (environment / path.name).symlink_to(path)
    (environment / ".ready").touch()


def _script(folder: Path) -> str:
    """All steps for one shell: what one of them exports, the next ones have."""
    lines = []
    for number, (kind, code, _) in enumerate(steps()):
        lines.append(f"echo '{MARK}'")
        if kind == "python":
            program = folder / f"step_{number}.py"
            program.write_text(code)
            lines.append(f"python {program.name}")
        else:
            assert kind == "sh", f"nobody knows how to run {kind}"
            lines.append(code)
    return "\n".join(lines)


def _matches(said: str, printed: str) -> bool:
    pattern = ".*".join(map(re.escape, said.split(ANYTHING)))
    return re.fullmatch(pattern, printed, re.DOTALL) is not None
