"""`suiro context`: names for clusters."""

from __future__ import annotations

from typing import Annotated

import typer

from suiro.cli.common import Output, print_table, printed
from suiro.contexts import load_contexts, save_contexts
from suiro.settings import parse_bootstrap

contexts = typer.Typer(help="Names for clusters, and which one is meant.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The context's name.")]


@contexts.command()
def add(
    name: Name,
    bootstrap: Annotated[str, typer.Argument(metavar="BOOTSTRAP", help="suiro://host:port,…")],
) -> None:
    """Give a cluster a name, or a name another cluster. The first one becomes the current one.

    Example: suiro context add prod suiro://a.example:9750,b.example:9750
    """
    parse_bootstrap(bootstrap)
    found = load_contexts()
    found.add(name, bootstrap)
    save_contexts(found)
    typer.echo(f"{name} is {bootstrap}")


@contexts.command()
def use(name: Name) -> None:
    """Make it the one that is meant where nothing else is said.

    Example: suiro context use prod
    """
    found = load_contexts()
    found.use(name)
    save_contexts(found)
    typer.echo(f"{name} ({found.bootstraps[name]}) is the current context")


@contexts.command("ls")
def list_contexts(output: Output = "table") -> None:
    """List them; a star marks the current one.

    Example: suiro context ls
    """
    found = load_contexts()
    listed = [
        {"name": name, "bootstrap": bootstrap, "current": name == found.current}
        for name, bootstrap in found.bootstraps.items()
    ]
    if not printed(output, listed):
        rows = [("*" if c["current"] else "", c["name"], c["bootstrap"]) for c in listed]
        print_table(("", "NAME", "BOOTSTRAP"), rows)


@contexts.command()
def rm(name: Name) -> None:
    """Forget a name; nothing happens to the cluster.

    Example: suiro context rm staging
    """
    found = load_contexts()
    found.remove(name)
    save_contexts(found)
    typer.echo(f"removed {name}")
