"""The tree of commands."""

from __future__ import annotations

from typing import Annotated, Literal

import typer
from typer._completion_shared import get_completion_script

from suiro.cli.config import configs
from suiro.cli.consume import consume
from suiro.cli.context import contexts
from suiro.cli.doctor import debug, doctor
from suiro.cli.group import groups
from suiro.cli.health import can_restart, drain, health
from suiro.cli.leader import leaders
from suiro.cli.logs import logs
from suiro.cli.metadata import metadata
from suiro.cli.node import node
from suiro.cli.output import Output, printed
from suiro.cli.plan import plan
from suiro.cli.produce import produce
from suiro.cli.quorum import quorum
from suiro.cli.reassign import reassign
from suiro.cli.storage import storage
from suiro.cli.top import bench, top
from suiro.cli.topic import topics
from suiro.cli.txn import transactions
from suiro.cli.up import down, up
from suiro.cli.verify import verify
from suiro.cli.why import errors, why
from suiro.version import PROTOCOL_MAX, PROTOCOL_MIN, VERSION

app = typer.Typer(
    name="suiro",
    help="A distributed commit log. Start with `suiro up`.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=True,
)

app.command()(up)
app.command()(down)
app.command()(produce)
app.command()(consume)
app.command()(health)
app.command("can-restart")(can_restart)
app.command()(drain)
app.command()(doctor)
app.command()(why)
app.command()(errors)
app.command()(top)
app.command()(bench)
app.add_typer(debug, name="debug")
app.command()(verify)
app.command()(plan)
app.add_typer(contexts, name="context")
app.add_typer(topics, name="topic")
app.add_typer(groups, name="group")
app.add_typer(configs, name="config")
app.add_typer(transactions, name="txn")
app.add_typer(leaders, name="leader")
app.add_typer(reassign, name="reassign")
app.add_typer(logs, name="log")
app.add_typer(storage, name="storage")
app.add_typer(node, name="node")
app.add_typer(quorum, name="quorum")
app.add_typer(metadata, name="metadata")


@app.command()
def version(output: Output = "table") -> None:
    """Print the version of this software.

    Example: suiro version
    """
    if not printed(output, {"version": VERSION, "protocol": [PROTOCOL_MIN, PROTOCOL_MAX]}):
        typer.echo(VERSION)


@app.command()
def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="Which shell.")],
) -> None:
    """Print what makes a shell complete `suiro` commands; `suiro --install-completion` installs it.

    Example: suiro completion bash > /etc/bash_completion.d/suiro
    """
    typer.echo(
        get_completion_script(prog_name="suiro", complete_var="_SUIRO_COMPLETE", shell=shell)
    )
