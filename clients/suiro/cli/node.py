"""`suiro node`: one node as a container runs it, from a file that nodes of its kind share."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from suiro._proto import admin_pb2 as pb
from suiro.cli.common import in_loop
from suiro.model.error_base import SuiroError
from suiro.model.errors import Unavailable
from suiro.settings import DEFAULT_PORT, parse_bootstrap
from suiro.transport.methods import AdminMethods

if TYPE_CHECKING:
    from cluster.config import NodeConfig
    from suiro.aio import Admin
    from suiro.model.ids import NodeId

LOOK_S = 0.5

node = typer.Typer(help="Run one node, as a container does.", no_args_is_help=True)

Config = Annotated[Path, typer.Option("--config", help="The node's TOML file.")]
Name = Annotated[
    str | None,
    typer.Option(
        envvar="POD_NAME",
        help="broker-2, say: its number is added to first_node_id of the file.",
        show_default=False,
    ),
]
Advertise = Annotated[str, typer.Option(help="host:port that others are told to connect to.")]
ClusterId = Annotated[str, typer.Option(help="Of the cluster, if the file does not say.")]
Rack = Annotated[str, typer.Option(help="Where it stands, such as a zone.")]
Timeout = Annotated[
    float, typer.Option("--timeout", help="Seconds that a controller waits for the others.")
]


@node.command("format")
def format_node(
    config: Config,
    name: Name = None,
    advertise: Advertise = "",
    cluster_id: ClusterId = "",
    timeout: Timeout = 600,
) -> None:
    """Make the node's data directory its own if it is blank: the init step.

    A blank controller founds the quorum only together with all the others, blank as well. If they
    have a quorum, it lost its volume or came late, and is formatted as one to be added.

    Example: suiro node format --config controller.toml --name controller-0
    """
    _format(_load(config, name, advertise=advertise, cluster_id=cluster_id), timeout)


@node.command()
def run(
    config: Config,
    name: Name = None,
    advertise: Advertise = "",
    cluster_id: ClusterId = "",
    rack: Rack = "",
    with_format: Annotated[
        bool, typer.Option("--format", help="`suiro node format` first.")
    ] = False,
    timeout: Timeout = 600,
) -> None:
    """Run the node until SIGTERM; its leaders are moved away before it goes.

    Example: suiro node run --config broker.toml --name broker-0 --format
    """
    from cluster.launch import run_node

    loaded = _load(config, name, advertise=advertise, cluster_id=cluster_id, rack=rack)
    if with_format:
        _format(loaded, timeout)
    run_node(loaded)


@node.command()
def probe(
    address: Annotated[str, typer.Option(help="host:port of the node.")] = (
        f"127.0.0.1:{DEFAULT_PORT}"
    ),
    service: Annotated[str, typer.Argument(help="live or ready.")] = "ready",
    timeout: Annotated[float, typer.Option(help="Seconds to wait for an answer.")] = 3.0,
) -> None:
    """Ask a node as an orchestrator's gRPC probe does; fails unless it serves.

    Ready is a broker whose replicas are in sync again, and a controller that has caught up.

    Example: suiro node probe ready --address 127.0.0.1:9750
    """
    from suiro.transport.grpc_transport import GrpcTransport  # noqa: F401 - tunes the process

    import grpc  # isort: skip
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    where = parse_bootstrap(address)[0]
    with grpc.insecure_channel(str(where)) as channel:
        request = health_pb2.HealthCheckRequest(service=service)
        try:
            reply = health_pb2_grpc.HealthStub(channel).Check(request, timeout=timeout)
        except grpc.RpcError as error:
            raise Unavailable(f"{where} does not answer for '{service}': {error.code()}") from None
    state = health_pb2.HealthCheckResponse.ServingStatus.Name(reply.status)
    typer.echo(state)
    if reply.status != health_pb2.HealthCheckResponse.SERVING:
        raise typer.Exit(1)


@node.command("before-stop")
def before_stop(
    config: Config,
    name: Name = None,
    timeout: Annotated[float, typer.Option(help="Seconds to wait at most.")] = 60.0,
) -> None:
    """Wait until this node may stop without harm; a controller that leads hands over first.

    What a container's preStop hook runs. It never fails: when the time is up the node stops anyway,
    and moves its leaders away itself, as always.

    Example: suiro node before-stop --config broker.toml --name broker-0
    """
    loaded = _load(config, name)
    address = f"127.0.0.1:{loaded.listen.port}"
    try:
        in_loop(_wait_to_stop(address, loaded.node_id, loaded.roles, timeout))
    except TimeoutError:
        typer.echo(f"stopping anyway: {timeout:.0f} s are up", err=True)
    except SuiroError as error:
        typer.echo(f"stopping anyway: {error}", err=True)


async def _wait_to_stop(
    address: str, node_id: NodeId, roles: tuple[str, ...], timeout_s: float
) -> None:
    from suiro.aio import Admin
    from suiro.aio.cluster_view import look
    from suiro.cluster_view import against_restart

    admin = Admin(address, timeout_s=timeout_s)
    try:
        async with asyncio.timeout(timeout_s):
            if "controller" in roles:
                await _hand_over(admin, node_id)
            elif "broker" in roles:
                while against := against_restart(await look(admin), node_id):
                    typer.echo(f"waiting: {against[0].subject}: {against[0].text}", err=True)
                    await asyncio.sleep(LOOK_S)
    finally:
        await admin.close()


async def _hand_over(admin: Admin, node_id: NodeId) -> None:
    described = await admin.ask(AdminMethods.DESCRIBE_QUORUM, pb.DescribeQuorumRequest())
    if described.leader == node_id:
        await admin.ask(AdminMethods.TRANSFER_CONTROLLER, pb.TransferControllerRequest(to=-1))


def _load(config: Path, name: str | None, **over: str) -> NodeConfig:
    from cluster.config import NodeConfig

    given = {key: value for key, value in over.items() if value}
    return NodeConfig.from_toml(config, name=name, over=given)


def _format(config: NodeConfig, timeout_s: float) -> None:
    from cluster.founding_desk import format_node
    from cluster.host.logs import set_up_logging
    from cluster.host.offload import Threads
    from cluster.launch import real_env

    set_up_logging(config.log_format, config.log_level)
    threads = Threads("suiro-io", 1)
    try:
        identity = asyncio.run(format_node(config, real_env(threads), timeout_s=timeout_s))
    finally:
        threads.close()
    print(  # noqa: T201 - goes to the container's log, beside the node's own lines
        f"{config.data_dir} is node {identity.node_id} of cluster {identity.cluster_id}, "
        f"directory {identity.directory_name}",
        file=sys.stderr,
    )
