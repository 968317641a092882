"""Ends the nodes of a test whose process is gone, however it went: kill -9 too.

`Keeper` is the test's side: it starts this file as a program and tells it of every node. The
program reads process ids, one a line, until its input ends, which happens when nobody is left who
could stop the nodes. Then it kills whatever of them still runs, also what is paused, and removes
their directory. It imports nothing of Suiro, so it costs a few milliseconds.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys


class Keeper:
    """The test's hold on the program; `directory` goes away with the nodes, if it is given."""

    def __init__(self, directory: str = "") -> None:
        self._program = subprocess.Popen(
            [sys.executable, "-I", __file__, directory],
            stdin=subprocess.PIPE,
            start_new_session=True,  # what ends the test's whole group must not end it, too
        )

    def watch(self, pid: int) -> None:
        """This process must not outlive the test."""
        assert self._program.stdin is not None
        self._program.stdin.write(f"{pid}\n".encode())
        self._program.stdin.flush()

    def close(self) -> None:
        """The test has stopped its nodes; returns when the directory is gone."""
        assert self._program.stdin is not None
        self._program.stdin.close()
        self._program.wait()


def main() -> None:
    nodes = []
    for line in sys.stdin:
        # A descriptor stands for this very process, also after its number has been given away.
        with contextlib.suppress(ProcessLookupError):
            nodes.append(os.pidfd_open(int(line)))
    for node in nodes:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(node, signal.SIGKILL)
    directory = sys.argv[1]
    if directory:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
