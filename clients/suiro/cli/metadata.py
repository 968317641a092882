"""`suiro metadata`: the cluster's metadata as records, and as a tree to walk in."""

from __future__ import annotations

import asyncio
import cmd
import json
from dataclasses import asdict, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suiro._proto import admin_pb2 as admin_pb
from suiro._proto import controller_pb2 as pb
from suiro.cli.common import Bootstrap, in_loop
from suiro.model.codec import decode
from suiro.model.errors import Unavailable
from suiro.model.ids import Address
from suiro.model.image import ClusterImage
from suiro.model.records import ConfigResource
from suiro.transport.methods import AdminMethods, ControllerMethods

if TYPE_CHECKING:
    from suiro.model.records import MetadataRecord
    from suiro.transport.api import Stream

metadata = typer.Typer(help="Inspect the cluster's metadata.", no_args_is_help=True)

Tree = dict[str, Any]

FETCH_S_MAX = 30.0


@metadata.command()
def dump(bootstrap: Bootstrap = None) -> None:
    """Print the metadata as one JSON record per line, as a snapshot holds them.

    Example: suiro metadata dump | grep TopicCreated
    """
    for record in in_loop(_fetch(bootstrap)):
        line = {"type": type(record).__name__, **_plain(record)}
        typer.echo(json.dumps(line))


@metadata.command()
def shell(
    command: Annotated[
        list[str] | None, typer.Argument(help="ls, cat or tree, and a path; else interactive.")
    ] = None,
    bootstrap: Bootstrap = None,
) -> None:
    """Walk the metadata like a file system: ls, cd, cat, tree.

    Example: suiro metadata shell cat /topics/orders/0
    """
    image = ClusterImage(in_loop(_fetch(bootstrap)))
    browser = _Browser(_tree(image))
    if not command:
        browser.cmdloop()
        return
    browser.onecmd(" ".join(command))
    if browser.has_failed:
        raise typer.Exit(1)


async def _fetch(bootstrap: str | None) -> list[MetadataRecord]:
    """All that is agreed on by now; from the leader if it answers, as the others may be behind."""
    from suiro.aio.admin import Admin

    async with Admin(bootstrap) as admin:
        found = await admin.ask(AdminMethods.DESCRIBE_QUORUM, admin_pb.DescribeQuorumRequest())
        members = sorted(found.members, key=lambda m: m.address.node_id != found.leader)
        for member in members:
            address = Address(member.address.host, member.address.port)
            transport = admin.connection.transport
            stream = await transport.open(address, ControllerMethods.FOLLOW_METADATA)
            try:
                async with asyncio.timeout(FETCH_S_MAX):
                    await stream.send(pb.FollowMetadataRequest(hello=admin.connection.hello()))
                    return await _read_up_to(stream, found.commit_index)
            except (Unavailable, TimeoutError):
                continue
            finally:
                stream.cancel()
    raise Unavailable("no controller gave its metadata")


async def _read_up_to(
    stream: Stream[pb.FollowMetadataRequest, pb.MetadataFeed], index: int
) -> list[MetadataRecord]:
    """A feed never ends by itself: it goes on with what is agreed on meanwhile."""
    records: list[MetadataRecord] = []
    while (message := await stream.receive()) is not None:
        if message.snapshot:
            records.clear()
        records += [decode(encoded) for encoded in message.records]
        if message.index >= index:
            return records
    raise Unavailable("the feed has ended")


def _tree(image: ClusterImage) -> Tree:
    """What people ask about, by the names they know."""
    topics = {
        topic.name: {
            "id": topic.id.hex(),
            "configs": dict(image.configs(ConfigResource.TOPIC, topic.name)),
            **{str(state.partition): _plain(state) for state in topic.partitions},
        }
        for topic in image.topics.values()
    }
    nodes = {
        str(node.id): {
            **_plain(node.registration),
            "fenced": node.fenced,
            "shutting_down": node.shutting_down,
            "replicas": len(image.replicas_on(node.id)),
            "leaders": len(image.leaders_on(node.id)),
        }
        for node in image.nodes.values()
    }
    return {
        "topics": topics,
        "nodes": nodes,
        "configs": dict(image.configs(ConfigResource.CLUSTER)),
        "features": dict(image.features),
        "shards": {f"{s.kind}-{s.shard}": _plain(s) for s in image.shards.values()},
        "state_hash": image.state_hash().hex(),
    }


def _plain(value: Any) -> Any:
    """As JSON can hold it: bytes as hexadecimal digits, enums by name."""
    if is_dataclass(value) and not isinstance(value, type):
        return {key: _plain(item) for key, item in asdict(value).items()}
    match value:
        case bytes():
            return value.hex()
        case Enum():
            return value.name
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case _:
            return value


class _Browser(cmd.Cmd):
    """A tree of dictionaries with a current place in it."""

    intro = "The cluster's metadata. ls, cd, cat, tree; Ctrl-D or exit leaves."

    def __init__(self, tree: Tree) -> None:
        super().__init__()
        self._root = tree
        self._place: list[str] = []
        self.has_failed = False
        """Whether somebody asked for what is not there."""
        self._prompt()

    def do_ls(self, path: str) -> None:
        """ls [path]: the names there."""
        found = self._find(path)
        if isinstance(found, dict):
            for name in sorted(found, key=lambda n: (not n.isdigit(), n.zfill(8))):
                typer.echo(f"{name}/" if isinstance(found[name], dict) else name)
        elif found is not None:
            typer.echo(path)

    def do_cd(self, path: str) -> None:
        """cd path: go there; .. is one up."""
        if isinstance(self._find(path), dict):
            self._place = self._resolve(path)
            self._prompt()

    def do_cat(self, path: str) -> None:
        """cat [path]: everything there, as JSON."""
        found = self._find(path)
        if found is not None:
            typer.echo(json.dumps(found, indent=1))

    def do_tree(self, path: str) -> None:
        """tree [path]: names and values below, indented."""
        found = self._find(path)
        if found is not None:
            self._show(found, 0)

    def default(self, line: str) -> None:
        """What is none of these."""
        typer.echo(f"'{line}' is none of ls, cd, cat, tree and exit", err=True)
        self.has_failed = True

    def do_exit(self, _: str) -> bool:
        """Leave."""
        return True

    do_EOF = do_exit  # noqa: N815 - the name that cmd looks for

    def _show(self, value: Any, depth: int) -> None:
        if not isinstance(value, dict):
            typer.echo("  " * depth + str(value))
            return
        for name, item in value.items():
            if isinstance(item, dict):
                typer.echo("  " * depth + f"{name}/")
                self._show(item, depth + 1)
            else:
                typer.echo("  " * depth + f"{name}: {item}")

    def _find(self, path: str) -> Any:
        found: Any = self._root
        for name in self._resolve(path):
            if not isinstance(found, dict) or name not in found:
                typer.echo(f"there is no {path}", err=True)
                self.has_failed = True
                return None
            found = found[name]
        return found

    def _resolve(self, path: str) -> list[str]:
        place = [] if path.startswith("/") else list(self._place)
        for name in path.split("/"):
            if name == "..":
                place = place[:-1]
            elif name not in {"", "."}:
                place.append(name)
        return place

    def _prompt(self) -> None:
        self.prompt = f"/{'/'.join(self._place)}> "
