"""`suiro up` and `suiro down`: a cluster on this machine."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from suiro.model.errors import Unavailable
from suiro.model.ids import Address, NodeId
from suiro.settings import DEFAULT_PORT

if TYPE_CHECKING:
    from collections.abc import Callable

READY_TIMEOUT_S = 60.0
POLL_S = 0.02

DataDir = Annotated[
    Path, typer.Option("--data-dir", "-d", help="Where the data goes; kept between runs.")
]


def up(
    data_dir: DataDir = Path(".suiro"),
    brokers: Annotated[
        int | None, typer.Option(help="So many brokers, each a process of its own.")
    ] = None,
    controllers: Annotated[
        int, typer.Option(help="With --brokers: so many controllers, each a process.")
    ] = 1,
    port: Annotated[int, typer.Option(help="Where clients connect.")] = DEFAULT_PORT,
    background: Annotated[
        bool, typer.Option("--background", help="Return once it serves; `suiro down` stops it.")
    ] = False,
) -> None:
    """Start a cluster on this machine. Ctrl-C stops it cleanly.

    Without --brokers it is one process with every role.

    Example: suiro up --brokers 3 --controllers 3 --data-dir ./cluster
    """
    if background:
        _start_in_background(data_dir)
    elif brokers is None:
        _run_one_process(data_dir, Address("127.0.0.1", port))
    else:
        _run_many_processes(data_dir, brokers, controllers, port)


def down(data_dir: DataDir = Path(".suiro")) -> None:
    """Stop the cluster that `suiro up --background` started.

    Example: suiro down
    """
    pid = _running_pid(data_dir)
    if pid is None:
        raise Unavailable(f"nothing that was started in the background runs in {data_dir}")
    os.kill(pid, signal.SIGTERM)
    while _running_pid(data_dir) is not None:
        time.sleep(POLL_S)
    typer.echo("stopped")


def _run_one_process(data_dir: Path, listen: Address) -> None:
    from cluster.config import NodeConfig
    from cluster.host.fs import OsFs
    from cluster.host.store import RocksStore
    from cluster.launch import run_node
    from cluster.storage import (
        IDENTITY_FILE,
        Founder,
        Identity,
        format_directory,
        random_cluster_id,
        random_directory_id,
    )

    fs = OsFs()
    if not fs.exists(data_dir / IDENTITY_FILE):
        dice = random.SystemRandom()
        identity = Identity(random_cluster_id(dice), NodeId(1), random_directory_id(dice))
        founder = Founder(identity.node_id, identity.directory_id, listen)
        format_directory(fs, RocksStore, data_dir, identity, [founder])
    config = NodeConfig(
        node_id=NodeId(1), roles=("controller", "broker"), data_dir=data_dir, listen=listen
    )
    run_node(config, lambda: _say_ready(f"suiro://{listen}", data_dir))


def _run_many_processes(data_dir: Path, brokers: int, controllers: int, port: int) -> None:
    from cluster.local_cluster import Layout, LocalCluster

    cluster = LocalCluster(data_dir, Layout(controllers=controllers, brokers=brokers, port=port))
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with cluster:
            for node in cluster.nodes.values():
                typer.echo(f"{node.name:14} {node.address}  log {node.log_path}")
            _say_ready(cluster.bootstrap, data_dir)
            while True:
                signal.pause()
    except KeyboardInterrupt:
        typer.echo("stopped")


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _start_in_background(data_dir: Path) -> None:
    """The same command without --background, in a session of its own, until it says it is up."""
    if _running_pid(data_dir) is not None:
        raise Unavailable(f"a cluster runs in {data_dir} already; `suiro down` stops it")
    data_dir.mkdir(parents=True, exist_ok=True)
    log_path = data_dir / "up.log"
    arguments = [item for item in sys.argv[1:] if item != "--background"]
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "suiro.cli", *arguments],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    _pid_path(data_dir).write_text(str(process.pid))
    _wait(lambda: b"Suiro is up" in log_path.read_bytes(), process, log_path)
    said = log_path.read_text()
    typer.echo(said[said.index("Suiro is up") :].rstrip())
    typer.echo(f"\n`suiro down --data-dir {data_dir}` stops it; its log is {log_path}")


def _wait(is_up: Callable[[], bool], process: subprocess.Popen[bytes], log_path: Path) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_S  # noqa: TID251 - outside any node
    while not is_up():
        if process.poll() is not None or time.monotonic() > deadline:  # noqa: TID251
            raise Unavailable(
                f"the cluster did not start; {log_path} says:\n{log_path.read_text()}"
            )
        time.sleep(POLL_S)


def _pid_path(data_dir: Path) -> Path:
    return data_dir / "up.pid"


def _running_pid(data_dir: Path) -> int | None:
    path = _pid_path(data_dir)
    if not path.exists():
        return None
    pid = int(path.read_text())
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    return pid


def _say_ready(bootstrap: str, data_dir: Path) -> None:
    typer.echo(f"\nSuiro is up at {bootstrap} (data in {data_dir}). Try:\n")
    typer.echo("  echo hello | suiro produce greetings")
    typer.echo("  suiro consume greetings --from-beginning -n 1")
    sys.stdout.flush()
