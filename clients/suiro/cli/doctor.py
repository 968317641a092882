"""`suiro doctor` and `suiro debug bundle`: what is wrong between here and the cluster."""

from __future__ import annotations

import io
import json
import platform
import sys
import tarfile
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suiro._proto import node_pb2
from suiro.cli.common import VERDICT_NO, Bootstrap, in_loop, print_table
from suiro.cli.output import Output, plain_data, printed
from suiro.cli.progress import Progress
from suiro.model.error_base import SuiroError
from suiro.settings import parse_bootstrap
from suiro.transport.methods import NodeMethods
from suiro.version import SOFTWARE
from suiro.wall_clock import wall_clock_ms

if TYPE_CHECKING:
    from suiro.aio import Admin
    from suiro.cluster_view import ClusterView
    from suiro.diagnosis import Finding

debug = typer.Typer(help="Gather what a bug report needs.", no_args_is_help=True)

ASK_S = 5.0


def doctor(output: Output = "table", bootstrap: Bootstrap = None) -> None:
    """Look for what is wrong on the way to the cluster: names, ports, dead nodes, clocks, versions.

    Exit code 3 if something is.

    Example: suiro doctor --bootstrap suiro://broker-1.example:9750
    """
    found = in_loop(_examine(bootstrap))
    if not printed(output, found):
        rows = [(f.level, f.check, f.subject, f.text) for f in found]
        print_table(("LEVEL", "CHECK", "WHAT", "FOUND"), rows)
        for finding in found:
            if finding.advice:
                typer.echo(f"fix {finding.subject}: {finding.advice}")
    if any(finding.level != "ok" for finding in found):
        raise typer.Exit(VERDICT_NO)


@debug.callback()
def _group() -> None:
    """Gather what a bug report needs."""


@debug.command()
def bundle(
    file: Annotated[Path, typer.Option("--file", "-f", help="What to write.")] = Path(
        "suiro-debug.tar.gz"
    ),
    bootstrap: Bootstrap = None,
) -> None:
    """Write one archive: the doctor's findings, nodes, topics, settings, and every metrics page.

    It holds names of topics and groups, and no record.

    Example: suiro debug bundle --file report.tar.gz
    """
    content = in_loop(_gather(bootstrap))
    with tarfile.open(file, "w:gz") as archive:
        for name, text in content.items():
            entry = tarfile.TarInfo(f"suiro-debug/{name}")
            entry.size = len(data := text.encode())
            entry.mtime = wall_clock_ms() // 1000
            archive.addfile(entry, io.BytesIO(data))
    typer.echo(f"{file}: {len(content)} files")


async def _examine(bootstrap: str | None) -> list[Finding]:
    from suiro.aio.doctor import examine
    from suiro.client_env import real_env

    env = real_env()
    try:
        return await examine(parse_bootstrap(bootstrap), env)
    finally:
        await env.transport.close()


async def _gather(bootstrap: str | None) -> dict[str, str]:
    from suiro.aio import Admin

    content = {
        "client.json": _json(_client()),
        "doctor.json": _json(plain_data(await _examine(bootstrap))),
    }
    async with Admin(bootstrap) as admin:
        view = await admin.look()
        content["cluster.json"] = _json(plain_data(view))
        configs = {name: await admin.describe_configs(name) for name in sorted(view.topics)}
        content["configs.json"] = _json(
            {n: {key: e.value for key, e in found.items()} for n, found in configs.items()}
        )
        for name, ask in (
            ("groups.json", admin.groups.list_groups()),
            ("transactions.json", admin.transactions.list_transactions()),
        ):
            content[name] = _json(plain_data(await ask))
        content |= await _metrics(admin, view)
    return content


async def _metrics(admin: Admin, view: ClusterView) -> dict[str, str]:
    addresses = {node.node_id: node.address for node in view.nodes}
    addresses |= {voter.node_id: voter.address for voter in view.quorum}
    request = node_pb2.DescribeNodeRequest(with_metrics=True)
    content = {}
    with Progress("nodes", len(addresses)) as progress:
        for done, (node_id, address) in enumerate(sorted(addresses.items()), 1):
            try:
                reply = await admin.connection.transport.call(
                    address, NodeMethods.DESCRIBE, request, timeout_s=ASK_S
                )
                content[f"metrics-{node_id}.txt"] = reply.metrics.decode()
            except SuiroError as error:
                content[f"metrics-{node_id}.missing.txt"] = f"{error}\n"
            progress.show(done)
    return content


def _client() -> dict[str, object]:
    return {
        "software": SOFTWARE,
        "python": sys.version,
        "platform": platform.platform(),
        "packages": sorted(f"{d.name}=={d.version}" for d in distributions()),
    }


def _json(data: Any) -> str:
    return json.dumps(data, indent=1) + "\n"
