"""`suiro verify`: whether this cluster keeps its promises, shown on topics of its own."""

from __future__ import annotations

import random
from typing import Annotated

import typer

from suiro.cli.common import Bootstrap, Output, in_loop, print_table, printed


def verify(
    seconds: Annotated[float, typer.Option(min=0.1, help="How long to write and read.")] = 10.0,
    output: Output = "table",
    bootstrap: Bootstrap = None,
) -> None:
    """Write, read and commit transactions for a while, then check every answer.

    Uses three topics of its own and deletes them. Checks that nothing acknowledged is lost,
    doubled, out of order or changed, that transactions are all or nothing, and that a compacted
    table keeps its newest values. Nodes may be killed meanwhile. Exits with 1 if a promise is
    broken.

    Example: suiro verify --seconds 30
    """
    from suiro.verify.live import verify as run

    verdict = in_loop(run(bootstrap, seconds, random.Random()))
    if printed(output, verdict):
        raise typer.Exit(bool(verdict.violations))
    print_table(("WORKLOAD", "ACKNOWLEDGED AND CHECKED"), list(verdict.done.items()))
    for error, count in sorted(verdict.errors.items()):
        typer.echo(f"senders were told {error} {count} times")
    for violation in verdict.violations:
        typer.echo(f"BROKEN {violation}", err=True)
    typer.echo(f"broken promises: {len(verdict.violations)}")
    raise typer.Exit(bool(verdict.violations))
