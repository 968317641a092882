"""The tree of commands."""

from __future__ import annotations

import typer

from suiro.cli.consume import consume
from suiro.cli.context import contexts
from suiro.cli.group import groups
from suiro.cli.leader import leaders
from suiro.cli.logs import logs
from suiro.cli.metadata import metadata
from suiro.cli.produce import produce
from suiro.cli.quorum import quorum
from suiro.cli.reassign import reassign
from suiro.cli.storage import storage
from suiro.cli.topic import topics
from suiro.cli.txn import transactions
from suiro.cli.up import down, up
from suiro.version import VERSION

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
app.add_typer(contexts, name="context")
app.add_typer(topics, name="topic")
app.add_typer(groups, name="group")
app.add_typer(transactions, name="txn")
app.add_typer(leaders, name="leader")
app.add_typer(reassign, name="reassign")
app.add_typer(logs, name="log")
app.add_typer(storage, name="storage")
app.add_typer(quorum, name="quorum")
app.add_typer(metadata, name="metadata")


@app.command()
def version() -> None:
    """Print the version of this software."""
    typer.echo(VERSION)
