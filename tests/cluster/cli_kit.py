"""The `suiro` command as its user runs it: an exit code, and what it printed."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from typing import Any
from unittest.mock import patch

from suiro.cli import main

Answer = subprocess.CompletedProcess[str]


def suiro_cli(*words: str, given: str = "", timeout_s: float = 60) -> Answer:
    """A process of its own, with something on its standard input."""
    command = [sys.executable, "-m", "suiro.cli", *words]
    return subprocess.run(
        command, input=given, capture_output=True, text=True, timeout=timeout_s, check=False
    )


def suiro_here(*words: str) -> Answer:
    """The same in this process: starting another takes longer than most commands."""
    out, err = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    line = ["suiro", *words]
    code: object = 0
    with (
        patch.object(sys, "argv", line),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code
    assert isinstance(code, int)
    out.seek(0)
    return subprocess.CompletedProcess(line, code, out.read(), err.getvalue())


class Shell:
    """Commands for one cluster."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def run(self, *words: str) -> Answer:
        return suiro_here(*words, "-b", self.bootstrap)

    def ask(self, *words: str, code: int = 0) -> str:
        """What it printed; its exit code must be this one."""
        answer = self.run(*words)
        assert answer.returncode == code, answer.stdout + answer.stderr
        return answer.stdout

    def data(self, *words: str, code: int = 0) -> Any:
        return json.loads(self.ask(*words, "-o", "json", code=code))

    def refused(self, *words: str) -> str:
        """What it said on standard error; it must have failed."""
        answer = self.run(*words)
        assert answer.returncode == 1, answer.stdout
        return answer.stderr
