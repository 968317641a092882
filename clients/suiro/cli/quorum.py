"""`suiro quorum`: look at the controllers, and change who they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from suiro._proto import admin_pb2 as pb
from suiro._proto.common_pb2 import NodeAddress
from suiro.cli.common import Bootstrap, Output, in_loop, print_table, printed
from suiro.model.errors import InvalidRequest
from suiro.settings import parse_bootstrap
from suiro.transport.methods import AdminMethods

if TYPE_CHECKING:
    from suiro.transport.api import Method

Q = TypeVar("Q")
R = TypeVar("R")

quorum = typer.Typer(help="Look at the controllers, and change who they are.", no_args_is_help=True)

NodeNumber = Annotated[int, typer.Argument(metavar="NODE", help="A controller's node id.")]


@quorum.command()
def status(
    bootstrap: Bootstrap = None,
    state_hash: Annotated[
        bool, typer.Option(help="Hash the metadata too: costs a large cluster a second.")
    ] = False,
    output: Output = "table",
) -> None:
    """Show the leader, the log, and how far each controller is.

    Example: suiro quorum status --state-hash
    """
    reply = _ask(
        bootstrap,
        AdminMethods.DESCRIBE_QUORUM,
        pb.DescribeQuorumRequest(with_state_hash=state_hash),
    )
    if printed(output, _status(reply)):
        return
    typer.echo(
        f"leader {reply.leader}  term {reply.term}  committed {reply.commit_index}  "
        f"log end {reply.last_index}  snapshot {reply.snapshot_index}"
    )
    if state_hash:
        typer.echo(f"state {reply.state_hash} at {reply.applied_index} of node {reply.node_id}")
    rows = [
        (
            member.address.node_id,
            f"{member.address.host}:{member.address.port}",
            "voter" if member.voter else "learner",
            member.match_index,
            "yes" if member.recently_active else "no",
            _directory(member.directory_id),
        )
        for member in reply.members
    ]
    print_table(("NODE", "ADDRESS", "ROLE", "HOLDS", "ACTIVE", "DIRECTORY"), rows)


@quorum.command()
def add(
    node: NodeNumber,
    address: Annotated[str, typer.Argument(help="host:port of the new controller.")],
    directory: Annotated[str, typer.Argument(help="Its directory id, as `format` printed it.")],
    bootstrap: Bootstrap = None,
) -> None:
    """Add a running controller that was formatted with --no-initial-controllers.

    Example: suiro quorum add 104 10.0.0.4:9760 mFqkqYlQQYeMwDGxnbTb2w
    """
    from cluster.controller_quorum.directory import id_bytes

    where = parse_bootstrap(address)[0]
    request = pb.AddControllerRequest(
        address=NodeAddress(node_id=node, host=where.host, port=where.port),
        directory_id=id_bytes(directory),
    )
    _ask(bootstrap, AdminMethods.ADD_CONTROLLER, request)
    typer.echo(f"controller {node} is a voter")


@quorum.command()
def remove(node: NodeNumber, bootstrap: Bootstrap = None) -> None:
    """Remove a controller; it may be dead.

    Example: suiro quorum remove 101
    """
    _ask(bootstrap, AdminMethods.REMOVE_CONTROLLER, pb.RemoveControllerRequest(node_id=node))
    typer.echo(f"controller {node} is no longer a member")


@quorum.command()
def transfer(
    node: Annotated[int | None, typer.Argument(help="To this one; else to the furthest.")] = None,
    bootstrap: Bootstrap = None,
) -> None:
    """Hand the leadership over.

    Example: suiro quorum transfer 102
    """
    if node is not None and node < 0:
        raise InvalidRequest(f"node {node} is negative")
    request = pb.TransferControllerRequest(to=-1 if node is None else node)
    reply = _ask(bootstrap, AdminMethods.TRANSFER_CONTROLLER, request)
    typer.echo(f"controller {reply.leader} leads")


def _status(reply: pb.DescribeQuorumReply) -> dict[str, object]:
    return {
        "leader": reply.leader,
        "term": reply.term,
        "commit_index": reply.commit_index,
        "last_index": reply.last_index,
        "snapshot_index": reply.snapshot_index,
        "state_hash": reply.state_hash or None,
        "members": [
            {
                "node": member.address.node_id,
                "address": f"{member.address.host}:{member.address.port}",
                "voter": member.voter,
                "match_index": member.match_index,
                "active": member.recently_active,
                "directory": _directory(member.directory_id),
            }
            for member in reply.members
        ],
    }


def _ask(bootstrap: str | None, method: Method[Q, R], request: Q) -> R:
    """Of a broker, which passes it on, or of the controllers themselves if no broker is up."""
    from suiro.aio import Admin

    async def ask() -> R:
        admin = Admin(bootstrap)
        try:
            return await admin.ask(method, request)
        finally:
            await admin.close()

    return in_loop(ask())


def _directory(raw: bytes) -> str:
    from cluster.controller_quorum.directory import id_text

    return id_text(raw)
