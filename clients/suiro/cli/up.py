"""`suiro up`: a cluster on this machine."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Annotated

import typer

from suiro.settings import DEFAULT_PORT


def up(
    data_dir: Annotated[
        Path, typer.Option("--data-dir", "-d", help="Where the data goes; kept between runs.")
    ] = Path(".suiro"),
    port: Annotated[int, typer.Option(help="Where clients connect.")] = DEFAULT_PORT,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
) -> None:
    """Start a cluster on this machine: one process with every role. Ctrl-C stops it cleanly.

    Example: suiro up --data-dir /tmp/suiro
    """
    from cluster.config import NodeConfig
    from cluster.host.fs import OsFs
    from cluster.host.store import RocksStore
    from cluster.launch import run_node
    from cluster.storage import (
        Founder,
        Identity,
        format_directory,
        random_cluster_id,
        random_directory_id,
    )
    from suiro.model.ids import Address, NodeId

    listen = Address(host, port)
    fs = OsFs()
    if not fs.exists(data_dir / "identity.json"):
        dice = random.SystemRandom()
        identity = Identity(random_cluster_id(dice), NodeId(1), random_directory_id(dice))
        founder = Founder(identity.node_id, identity.directory_id, listen)
        format_directory(fs, RocksStore, data_dir, identity, [founder])
    config = NodeConfig(
        node_id=NodeId(1), roles=("controller", "broker"), data_dir=data_dir, listen=listen
    )

    def say_ready() -> None:
        typer.echo(f"\nSuiro is up at suiro://{listen} (data in {data_dir}). Try:\n")
        typer.echo("  echo hello | suiro produce greetings")
        typer.echo("  suiro consume greetings --from-beginning -n 1\n")

    run_node(config, say_ready)
