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

    from cluster.local_cluster import Layout

READY_TIMEOUT_S = 60.0
POLL_S = 0.02
UP = "up"

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
    groups: Annotated[
        int, typer.Option(help="With --brokers: so many group coordinators, each a process.")
    ] = 1,
    txns: Annotated[
        int, typer.Option(help="With --brokers: so many transaction coordinators.")
    ] = 1,
    port: Annotated[
        int, typer.Option(envvar="SUIRO_PORT", help="Where clients connect.")
    ] = DEFAULT_PORT,
    racks: Annotated[
        str | None, typer.Option(help="With --brokers: their racks in turn, a,b,c.")
    ] = None,
    join: Annotated[
        bool, typer.Option("--join", help="Add one more broker to the cluster in --data-dir.")
    ] = False,
    event_log: Annotated[
        bool, typer.Option("--event-log", help="Each node tells what it does in events.jsonl.")
    ] = False,
    background: Annotated[
        bool, typer.Option("--background", help="Return once it serves; `suiro down` stops it.")
    ] = False,
) -> None:
    """Start a cluster on this machine. Ctrl-C stops it cleanly.

    Without --brokers it is one process with every role. With --join it is one more broker of
    the cluster that runs there; `suiro reassign plan` says how to put load on it.

    Example: suiro up --brokers 3 --controllers 3 --data-dir ./cluster
    """
    if background:
        _start_in_background(data_dir, f"join-{len(_joined(data_dir)) + 1}" if join else UP)
    elif join:
        _run_one_more(data_dir, racks or "")
    elif brokers is None:
        _run_one_process(data_dir, Address("127.0.0.1", port), event_log)
    else:
        from cluster.local_cluster import Layout

        layout = Layout(
            controllers=controllers,
            brokers=brokers,
            groups=groups,
            txns=txns,
            port=port,
            racks=tuple(racks.split(",")) if racks else (),
            event_log=event_log,
        )
        _run_many_processes(data_dir, layout)


def down(data_dir: DataDir = Path(".suiro")) -> None:
    """Stop the cluster that `suiro up --background` started.

    Example: suiro down
    """
    names = [name for name in (*_joined(data_dir), UP) if _running_pid(data_dir, name) is not None]
    if not names:
        raise Unavailable(f"nothing that was started in the background runs in {data_dir}")
    for name in names:
        pid = _running_pid(data_dir, name)
        if pid is not None:
            os.kill(pid, signal.SIGTERM)
        while _running_pid(data_dir, name) is not None:
            time.sleep(POLL_S)
        _pid_path(data_dir, name).unlink()
    typer.echo("stopped")


def _run_one_process(data_dir: Path, listen: Address, event_log: bool) -> None:
    from cluster.config import ROLES, NodeConfig
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
        node_id=NodeId(1),
        roles=ROLES,
        data_dir=data_dir,
        listen=listen,
        internal_replication_factor=1,
        event_log=data_dir / "events.jsonl" if event_log else None,
    )
    run_node(config, lambda: _say_ready(f"suiro://{listen}", data_dir))


def _run_many_processes(data_dir: Path, layout: Layout) -> None:
    from cluster.local_cluster import LocalCluster

    cluster = LocalCluster(data_dir, layout)
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


def _run_one_more(data_dir: Path, rack: str) -> None:
    from cluster.local_cluster import PLAN, LocalCluster

    if not (data_dir / PLAN).exists():
        raise Unavailable(f"there is no cluster in {data_dir}; `suiro up --brokers 3` makes one")
    signal.signal(signal.SIGTERM, _interrupt)
    node = LocalCluster(data_dir).add_broker(rack)
    try:
        node.start()
        node.wait_ready()
        typer.echo(f"{node.name:14} {node.address}  log {node.log_path}")
        typer.echo(f"\nSuiro is up: broker {node.node_id} has joined. Put load on it with:\n")
        typer.echo(f"  suiro reassign plan --to-brokers …,{node.node_id} -o json > plan.json")
        typer.echo("  suiro reassign execute --plan plan.json --throttle 50MB/s")
        sys.stdout.flush()
        while True:
            signal.pause()
    except KeyboardInterrupt:
        node.signal(signal.SIGTERM)
        node.wait()
        typer.echo("stopped")
    finally:
        if node.is_running:
            node.kill()


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _start_in_background(data_dir: Path, name: str) -> None:
    """The same command without --background, in a session of its own, until it says it is up."""
    if _running_pid(data_dir, name) is not None:
        raise Unavailable(f"a cluster runs in {data_dir} already; `suiro down` stops it")
    data_dir.mkdir(parents=True, exist_ok=True)
    log_path = data_dir / f"{name}.log"
    arguments = [item for item in sys.argv[1:] if item != "--background"]
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "suiro.cli", *arguments],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    _pid_path(data_dir, name).write_text(str(process.pid))
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


def _pid_path(data_dir: Path, name: str) -> Path:
    return data_dir / f"{name}.pid"


def _joined(data_dir: Path) -> list[str]:
    """The names under which brokers that were added run in the background."""
    return sorted(path.stem for path in data_dir.glob("join-*.pid"))


def _running_pid(data_dir: Path, name: str) -> int | None:
    path = _pid_path(data_dir, name)
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
