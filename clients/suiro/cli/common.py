"""What the commands share: options, and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Bootstrap = Annotated[
    str | None,
    typer.Option(
        "--bootstrap",
        "-b",
        envvar="SUIRO",
        help="Where the cluster is: suiro://host:port,… (default: the one `suiro up` starts here).",
        show_default=False,
    ),
]

TopicName = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")]


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns of plain text, wide enough for what is in them; easy for people and for awk."""
    lines = [tuple(columns), *(tuple(str(cell) for cell in row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    for line in lines:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        typer.echo("  ".join(padded).rstrip())
