"""`suiro txn`: look at transactions, find those that hold readers back, and end one."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from suiro.cli.common import (
    Bootstrap,
    Output,
    TopicName,
    partition_of,
    print_table,
    printed,
)

if TYPE_CHECKING:
    from suiro.txn_info import OpenTransaction, TxnInfo, TxnListing

transactions = typer.Typer(help="Look at transactions, and end one.", no_args_is_help=True)

STALE_S: Final = 900.0
"""Longer than any transaction of one producer may be open."""

TxnName = Annotated[str, typer.Argument(metavar="ID", help="The transactional id.")]


@transactions.command("list")
def list_transactions(
    state: Annotated[
        list[str] | None,
        typer.Option(
            help="Only these: empty, ongoing, prepare_commit, prepare_abort, complete_commit, "
            "complete_abort; repeatable."
        ),
    ] = None,
    open_for_s: Annotated[
        float, typer.Option(help="Only those open for at least so many seconds.")
    ] = 0.0,
    output: Output = "table",
    bootstrap: Bootstrap = None,
) -> None:
    """List the transactional ids, with who holds them and what is open.

    Example: suiro txn list --state ongoing --open-for-s 60
    """
    from suiro.admin import Admin

    with Admin(bootstrap) as admin:
        found = admin.transactions.list_transactions(
            state or (), older_than_ms=int(open_for_s * 1000)
        )
    if printed(output, [_listing_json(each) for each in found]):
        return
    rows = [
        (
            each.transactional_id,
            each.state,
            each.producer_id,
            each.producer_epoch,
            time_text(each.started_at_ms),
            each.client or "-",
            each.coordinator,
        )
        for each in found
    ]
    print_table(("ID", "STATE", "PRODUCER", "EPOCH", "OPEN-SINCE", "CLIENT", "COORDINATOR"), rows)


@transactions.command()
def describe(name: TxnName, output: Output = "table", bootstrap: Bootstrap = None) -> None:
    """Show a transactional id: what is open and where, how the last one ended, who took it.

    Example: suiro txn describe copier-1
    """
    from suiro.admin import Admin

    with Admin(bootstrap) as admin:
        info = admin.transactions.describe(name)
    if printed(output, _info_json(info)):
        return
    listing = info.listing
    typer.echo(
        f"{name}: {listing.state}, producer {listing.producer_id} epoch {listing.producer_epoch}, "
        f"held by {listing.client or 'nobody'}, coordinator {listing.coordinator}"
    )
    typer.echo(f"open since: {time_text(listing.started_at_ms)}, timeout {info.timeout_ms} ms")
    typer.echo(f"partitions: {', '.join(map(str, info.partitions)) or '-'}")
    typer.echo(f"groups: {', '.join(info.groups) or '-'}")
    typer.echo(f"last outcome: {info.last_outcome or '-'}")
    if info.fenced_by:
        typer.echo(f"fenced by: {info.fenced_by} at {time_text(info.fenced_at_ms)}")
    if info.last_committed_sequence >= 0:
        typer.echo(f"last committed sequence: {info.last_committed_sequence}")
    if info.writers:
        typer.echo("")
        rows = [
            (w.writer, w.producer_id, "yes" if w.prepared else "no", len(w.partitions))
            for w in info.writers
        ]
        print_table(("WRITER", "PRODUCER", "PREPARED", "PARTITIONS"), rows)


@transactions.command()
def abort(name: TxnName, bootstrap: Bootstrap = None) -> None:
    """Abort the open transaction of an id; its producer is told that it was aborted.

    What is committed already cannot be aborted.

    Example: suiro txn abort copier-1
    """
    from suiro.admin import Admin

    with Admin(bootstrap) as admin:
        admin.transactions.abort(name)
    typer.echo(f"no transaction of {name} is open any more")


@transactions.command()
def producers(
    topic: TopicName,
    partition: Annotated[int, typer.Argument(help="The partition's number.")],
    output: Output = "table",
    bootstrap: Bootstrap = None,
) -> None:
    """Show who has written to a partition, and what they have open there.

    Example: suiro txn producers orders 0
    """
    from suiro.admin import Admin

    with Admin(bootstrap) as admin:
        found = admin.transactions.producers(partition_of(admin, topic, partition))
    if printed(output, asdict(found) | {"partition": str(found.partition)}):
        return
    typer.echo(
        f"{found.partition}: high watermark {found.high_watermark}, last stable offset "
        f"{found.last_stable_offset}"
    )
    rows = [
        (
            p.producer_id,
            p.producer_epoch,
            p.last_sequence,
            time_text(p.last_timestamp_ms),
            p.open_from if p.open_from >= 0 else "-",
        )
        for p in found.producers
    ]
    print_table(("PRODUCER", "EPOCH", "LAST-SEQUENCE", "LAST-WRITTEN", "OPEN-FROM"), rows)


@transactions.command("find-hanging")
def find_hanging(
    topic: Annotated[list[str] | None, typer.Option(help="Only these topics; repeatable.")] = None,
    silent_for_s: Annotated[
        float, typer.Option(help="Only those of which nothing was written for so many seconds.")
    ] = STALE_S,
    output: Output = "table",
    bootstrap: Bootstrap = None,
) -> None:
    """Find transactions that hold readers of committed records back, and who could end them.

    Example: suiro txn find-hanging --silent-for-s 60
    """
    from suiro.admin import Admin

    with Admin(bootstrap) as admin:
        found = admin.transactions.open_in_partitions(
            topic or (), older_than_ms=int(silent_for_s * 1000)
        )
    if printed(output, [_open_json(each) for each in found]):
        return
    rows = [
        (
            each.partition,
            each.producer.producer_id,
            each.producer.producer_epoch,
            each.producer.open_from,
            each.held_back,
            time_text(each.producer.last_timestamp_ms),
            each.transactional_id or "-",
            each.state or "no coordinator knows it",
        )
        for each in found
    ]
    print_table(
        ("PARTITION", "PRODUCER", "EPOCH", "FROM", "HELD-BACK", "LAST-WRITTEN", "ID", "STATE"), rows
    )


def time_text(at_ms: int) -> str:
    """For people; - for no time."""
    if at_ms < 0:
        return "-"
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(sep=" ", timespec="seconds")


def _listing_json(listing: TxnListing) -> dict[str, Any]:
    return asdict(listing) | {"coordinator": str(listing.coordinator)}


def _info_json(info: TxnInfo) -> dict[str, Any]:
    shown = asdict(info) | {
        "partitions": [str(partition) for partition in info.partitions],
        "writers": [
            asdict(w) | {"partitions": [str(partition) for partition in w.partitions]}
            for w in info.writers
        ],
    }
    del shown["listing"]
    return _listing_json(info.listing) | shown


def _open_json(each: OpenTransaction) -> dict[str, Any]:
    return asdict(each) | {"partition": str(each.partition)}
