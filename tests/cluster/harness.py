"""Real nodes as processes, for tests and benchmarks: start, stop, kill, look at their logs."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Self

from suiro.model.ids import Address

if TYPE_CHECKING:
    from pathlib import Path

READY_TIMEOUT_S = 30.0


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class SingleNode:
    """`suiro up` in a process of its own; its directory outlives it, so it can be started again."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.address = Address("127.0.0.1", free_port())
        self.log_path = directory / "node.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"suiro://{self.address}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start, and return once it serves."""
        command = [
            sys.executable,
            "-m",
            "suiro.cli",
            "up",
            "--data-dir",
            str(self.directory / "data"),
        ]
        command += ["--port", str(self.address.port)]
        with self.log_path.open("ab") as log:
            seen = log.tell()
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )
        self._wait_until_ready(seen)

    def _wait_until_ready(self, seen: int) -> None:
        assert self._process is not None
        deadline = time.monotonic() + READY_TIMEOUT_S
        while b"Suiro is up" not in self.log_path.read_bytes()[seen:]:
            if self._process.poll() is not None or time.monotonic() > deadline:
                log = self.log_path.read_bytes()[seen:].decode(errors="replace")
                self.kill()
                raise AssertionError(f"the node did not become ready:\n{log}")
            time.sleep(0.01)

    def stop(self) -> int:
        """Stop it as Ctrl-C does; its exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        return self._process.wait(READY_TIMEOUT_S)

    def kill(self) -> None:
        """kill -9: nothing is flushed, nobody is told."""
        assert self._process is not None
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(READY_TIMEOUT_S)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self.stop()
