"""`suiro leader`: who leads, and who should."""

from __future__ import annotations

from typing import Annotated

import typer

from suiro.cli.common import Bootstrap, Output, print_table, printed
from suiro.model.error_base import SuiroError
from suiro.model.errors import InvalidRequest
from suiro.model.ids import TopicPartition

leaders = typer.Typer(help="Elect partition leaders.", no_args_is_help=True)


@leaders.callback()
def _group() -> None:
    """Elect partition leaders."""


@leaders.command()
def elect(
    topic: Annotated[str | None, typer.Option(help="Of this topic.")] = None,
    partition: Annotated[int | None, typer.Option(help="Only this partition of it.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Of all partitions.")] = False,
    unclean: Annotated[
        bool, typer.Option("--unclean", help="Where nobody leads, let anyone; loses records.")
    ] = False,
    output: Output = "table",
    bootstrap: Bootstrap = None,
) -> None:
    """Let the preferred replicas lead again.

    With --unclean: where no in-sync replica is alive and the topic has
    unclean.leader.election.enable=true, let one lead that may lack records.

    Example: suiro leader elect --all
    """
    from suiro.admin import Admin

    if every == (topic is not None):
        raise InvalidRequest("say either --all or --topic")
    with Admin(bootstrap) as admin:
        chosen = None
        if topic is not None:
            count = len(admin.describe_topic(topic).partitions)
            numbers = range(count) if partition is None else [partition]
            chosen = [TopicPartition(topic, number) for number in numbers]
        outcomes = admin.elect_leaders(chosen, unclean=unclean)
    rows = [
        (name, "-" if isinstance(result, SuiroError) else result, _said(result))
        for name, result in sorted(outcomes.items())
    ]
    listed = [
        {"partition": str(n), "leader": None if leader == "-" else leader, "result": said}
        for n, leader, said in rows
    ]
    if not printed(output, listed):
        print_table(("PARTITION", "LEADER", "RESULT"), rows)
    if any(isinstance(result, SuiroError) for result in outcomes.values()):
        raise typer.Exit(1)


def _said(result: object) -> str:
    return result.message if isinstance(result, SuiroError) else "elected"
