"""`suiro storage`: give a node's directory its identity, once, before its first start."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from suiro.model.errors import InvalidRequest
from suiro.model.ids import NodeId
from suiro.settings import parse_bootstrap

if TYPE_CHECKING:
    from cluster.storage import Founder

storage = typer.Typer(help="Format the directories of nodes.", no_args_is_help=True)


@storage.command("random-uuid")
def random_uuid() -> None:
    """Print a new cluster id, or a directory id for --initial-controllers.

    Example: suiro storage random-uuid
    """
    from cluster.storage import random_cluster_id

    typer.echo(random_cluster_id(random.SystemRandom()))


@storage.command("format")
def format_storage(
    data_dir: Annotated[Path, typer.Option("--data-dir", "-d", help="The node's directory.")],
    cluster_id: Annotated[str, typer.Option(help="The same for every node of the cluster.")],
    node_id: Annotated[int, typer.Option(help="Different for every node of the cluster.")],
    initial_controllers: Annotated[
        str,
        typer.Option(
            help="On every founding controller, the same: id@host:port:directory-id,… "
            "(a directory id is what `random-uuid` prints)."
        ),
    ] = "",
    joins_quorum: Annotated[
        bool,
        typer.Option("--no-initial-controllers", help="A controller that joins a running quorum."),
    ] = False,
    ignore_formatted: Annotated[
        bool, typer.Option("--ignore-formatted", help="Leave a formatted directory as it is.")
    ] = False,
) -> None:
    """Make a directory the node's. A formatted one is refused, and so is a foreign cluster id.

    Example: suiro storage format -d data --cluster-id $ID --node-id 1
    """
    from cluster.host.fs import OsFs
    from cluster.host.store import RocksStore
    from cluster.storage import Identity, format_directory, random_directory_id

    founders: list[Founder] | None = [] if joins_quorum else None
    if initial_controllers:
        founders = [_founder(text) for text in initial_controllers.split(",")]
    mine = [f.directory_id for f in founders or [] if f.node_id == node_id]
    if founders and not mine:
        raise InvalidRequest(f"node {node_id} is not among --initial-controllers")
    directory_id = mine[0] if mine else random_directory_id(random.SystemRandom())
    identity = format_directory(
        OsFs(),
        RocksStore,
        data_dir,
        Identity(cluster_id, NodeId(node_id), directory_id),
        founders,
        ignore_formatted=ignore_formatted,
    )
    typer.echo(
        f"{data_dir} is node {identity.node_id} of cluster {identity.cluster_id}, "
        f"directory {identity.directory_name}"
    )


def _founder(text: str) -> Founder:
    from cluster.controller_quorum.directory import id_bytes
    from cluster.storage import Founder

    node, at, rest = text.strip().partition("@")
    address, _, directory = rest.rpartition(":")
    if not at or not node.isdigit() or not address:
        raise InvalidRequest(f"'{text}' is not id@host:port:directory-id")
    return Founder(NodeId(int(node)), id_bytes(directory), parse_bootstrap(address)[0])
