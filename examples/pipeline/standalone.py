"""A Spark standalone cluster on this machine: a master and two workers, from PySpark's own jars.

Each worker has a loopback address of its own, so that Spark takes them for two machines: it never
runs a speculative copy of a task where the task runs already.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import pyspark

if TYPE_CHECKING:
    from collections.abc import Sequence

MASTER_HOST: Final = "127.0.0.1"
WORKER_HOSTS: Final = ("127.0.0.2", "127.0.0.3")
START_S: Final = 180.0
STOP_S: Final = 20.0


class StandaloneSpark:
    """Started by `with`, gone after it; logs and the workers' files are in `folder`."""

    def __init__(self, folder: Path, cores: int = 1, memory: str = "1g") -> None:
        self.folder = folder
        self.master = f"spark://{MASTER_HOST}:{_free_port()}"
        self._size = ("--cores", str(cores), "--memory", memory)
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            port = self.master.rpartition(":")[2]
            self._start("master", "Master", ("--host", MASTER_HOST, "--port", port))
            self._wait_for("master", "I have been elected leader")
            for number, host in enumerate(WORKER_HOSTS, 1):
                files = ("--work-dir", str(self.folder / f"work-{number}"))
                self._start(
                    f"worker-{number}",
                    "Worker",
                    ("--host", host, *files, *self._size, self.master),
                )
            for number in range(1, len(WORKER_HOSTS) + 1):
                self._wait_for(f"worker-{number}", "Successfully registered with master")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Workers first: they end their executors."""
        for process in reversed(self._processes):
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOP_S)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._processes.clear()

    def _start(self, name: str, role: str, arguments: Sequence[str]) -> None:
        home = Path(pyspark.__file__).parent
        kind = f"org.apache.spark.deploy.{role.lower()}.{role}"
        with self._log_of(name).open("wb") as log:
            process = subprocess.Popen(
                [str(home / "bin" / "spark-class"), kind, "--webui-port", "0", *arguments],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, "SPARK_HOME": str(home), **worker_environment()},
            )
        self._processes.append(process)

    def _wait_for(self, name: str, said: str) -> None:
        log = self._log_of(name)
        until_s = time.monotonic() + START_S
        while said not in log.read_text(errors="replace"):
            if self._processes[-1].poll() is not None or time.monotonic() > until_s:
                raise RuntimeError(f"{name} of Spark did not start; see {log}")
            time.sleep(0.05)

    def _log_of(self, name: str) -> Path:
        return self.folder / f"{name}.log"


def worker_environment() -> dict[str, str]:
    """For a driver: its workers run this Python, and load PySpark as it is installed."""
    path = str(Path(__file__).parent / "worker_path")
    return {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": path}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((MASTER_HOST, 0))
        return int(probe.getsockname()[1])
