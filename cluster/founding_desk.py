"""Founding over the network: the note on disk, the service, and the init step that formats.

`founding.json` holds this directory's id before it is formatted, and the founders once they are
decided, in this order, so a step that is cut short goes on where it was.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Final

from suiro._proto import founding_pb2 as pb
from suiro.model.error_base import SuiroError
from suiro.model.errors import InvalidConfig, TimedOut
from suiro.model.ids import NodeId
from suiro.transport.api import Route
from suiro.transport.methods import FoundingMethods

from cluster.controller_quorum.directory import id_bytes, id_text
from cluster.founding import Found, Introduction, Join, Wait, decide
from cluster.host.fs import read_file, replace_file
from cluster.host.hello import check_cluster
from cluster.storage import (
    IDENTITY_FILE,
    Founder,
    Identity,
    format_directory,
    load_identity,
    random_directory_id,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from suiro.model.ids import Address
    from suiro.transport.api import Peer

    from cluster.config import NodeConfig
    from cluster.host.env import Env
    from cluster.host.fs import Fs

log = logging.getLogger("suiro.founding")

NOTE_FILE: Final = "founding.json"
ASK_TIMEOUT_S: Final = 2.0
ROUND_S: Final = 0.2
SAY_EVERY_ROUNDS: Final = 50


class FoundingDesk:
    """Tells other controllers who this one is, and remembers which of them are settled."""

    def __init__(self, cluster_id: str, me: Introduction) -> None:
        self.me = me
        self.settled: dict[NodeId, Introduction] = {}
        self._cluster_id = cluster_id

    def routes(self) -> list[Route]:
        return [Route(FoundingMethods.INTRODUCE, self.handle_introduce)]

    async def handle_introduce(self, request: pb.Introduction, _peer: Peer) -> pb.Introduction:
        check_cluster(request.cluster_id, self._cluster_id)
        caller = _from_wire(request)
        if caller.settled:
            self.settled[caller.node_id] = caller
        return self.card()

    def card(self) -> pb.Introduction:
        me = self.me
        return pb.Introduction(
            cluster_id=self._cluster_id,
            node_id=me.node_id,
            directory_id=me.directory_id,
            settled=me.settled,
            founders=[
                pb.FoundingMember(node_id=node, directory_id=directory)
                for node, directory in (me.founders or {}).items()
            ],
        )


def desk_of(fs: Fs, data_dir: Path, identity: Identity) -> FoundingDesk:
    """Of a controller that is formatted."""
    note = _load_note(fs, data_dir)
    founders = None if note is None or not note.settled else note.founders
    me = Introduction(identity.node_id, identity.directory_id, True, founders)
    return FoundingDesk(identity.cluster_id, me)


async def format_node(config: NodeConfig, env: Env, *, timeout_s: float) -> Identity:
    """Make the node's directory its own if it is blank; the init step of a container.

    A controller waits for the others as `founding` says; everyone else needs nobody.
    """
    if not config.cluster_id:
        raise InvalidConfig("the node's file has no cluster_id; `suiro storage random-uuid` is one")
    if env.fs.exists(config.data_dir / IDENTITY_FILE):
        return load_identity(env.fs, config.data_dir, config.cluster_id, config.node_id)
    if "controller" not in config.roles:
        directory_id = random_directory_id(env.rng)
        identity = Identity(config.cluster_id, config.node_id, directory_id)
        return format_directory(env.fs, env.open_store, config.data_dir, identity, None)
    me = _note_of(config, env)
    outcome = await _Assembly(config, env, me).outcome(timeout_s)
    identity = Identity(config.cluster_id, config.node_id, me.directory_id)
    return format_directory(env.fs, env.open_store, config.data_dir, identity, outcome)


class _Assembly:
    """The founders of one cluster, as one of them meets the others."""

    def __init__(self, config: NodeConfig, env: Env, me: Introduction) -> None:
        assert config.controllers, "NodeConfig asks for them"
        self._config = config
        self._env = env
        self._me = me
        first = config.node_id - _place(config)
        self._addresses = {NodeId(first + i): a for i, a in enumerate(config.controllers)}
        self._desk = FoundingDesk(config.cluster_id, me)

    async def outcome(self, timeout_s: float) -> list[Founder]:
        """The first voters; nobody if there is a quorum to join."""
        server = self._env.make_server([self._desk])
        await server.start(self._config.listen)
        try:
            async with asyncio.timeout(timeout_s):
                founders = await self._meet()
        except TimeoutError:
            raise TimedOut(
                f"{self._config.data_dir} is blank and not all first controllers were heard of "
                f"within {timeout_s:.0f} s. If this cluster is new, start the others; if this "
                "controller lost its volume, bring one of the others back first"
            ) from None
        finally:
            await server.stop(0)
            await self._env.transport.close()
        return founders

    async def _meet(self) -> list[Founder]:
        rounds = 0
        while True:
            heard = {**await self._ask_all(), **self._desk.settled}
            match self._decided() or decide(self._me, self._addresses, heard):
                case Found(founders):
                    self._settle(founders)
                    await self._ask_all()  # so they know, even if this node does not run soon
                    return [
                        Founder(node, directory, self._addresses[node])
                        for node, directory in sorted(founders.items())
                    ]
                case Join(settled):
                    log.warning(
                        "controllers %s have a quorum without this directory: formatting it as one "
                        "to be added (`suiro quorum remove %d`, then `suiro quorum add`)",
                        list(settled), self._me.node_id,
                    )  # fmt: skip
                    return []
                case Wait(missing):
                    if rounds % SAY_EVERY_ROUNDS == 0:
                        log.info("waiting for the controllers %s", list(missing))
            rounds += 1
            await asyncio.sleep(ROUND_S)

    def _decided(self) -> Found | None:
        return Found(self._me.founders) if self._me.founders else None

    def _settle(self, founders: Mapping[NodeId, bytes]) -> None:
        self._me = Introduction(self._me.node_id, self._me.directory_id, True, founders)
        _save_note(self._env.fs, self._config.data_dir, self._me)
        self._desk.me = self._me

    async def _ask_all(self) -> dict[NodeId, Introduction]:
        others = {n: a for n, a in self._addresses.items() if n != self._me.node_id}
        answers = await asyncio.gather(*(self._ask(address) for address in others.values()))
        return {
            node: said
            for node, said in zip(others, answers, strict=True)
            if said is not None and said.node_id == node
        }

    async def _ask(self, address: Address) -> Introduction | None:
        try:
            reply = await self._env.transport.call(
                address, FoundingMethods.INTRODUCE, self._desk.card(), timeout_s=ASK_TIMEOUT_S
            )
        except SuiroError as error:
            log.debug("%s was not heard: %s", address, error)
            return None
        return _from_wire(reply)


def _from_wire(said: pb.Introduction) -> Introduction:
    founders = {NodeId(f.node_id): f.directory_id for f in said.founders}
    return Introduction(NodeId(said.node_id), said.directory_id, said.settled, founders or None)


def _place(config: NodeConfig) -> int:
    """Where this controller stands among `controllers`: they are listed in the order of ids."""
    mine = config.advertised
    if mine not in config.controllers:
        raise InvalidConfig(f"{mine} is not among the controllers of the node's file")
    return config.controllers.index(mine)


def _note_of(config: NodeConfig, env: Env) -> Introduction:
    found = _load_note(env.fs, config.data_dir)
    if found is not None:
        return found
    env.fs.make_directory(config.data_dir)
    me = Introduction(config.node_id, random_directory_id(env.rng))
    _save_note(env.fs, config.data_dir, me)
    return me


def _load_note(fs: Fs, data_dir: Path) -> Introduction | None:
    path = data_dir / NOTE_FILE
    if not fs.exists(path):
        return None
    try:
        content = json.loads(read_file(fs, path))
        founders = {NodeId(int(n)): id_bytes(d) for n, d in content["founders"].items()}
        node_id, directory_id = NodeId(content["node_id"]), id_bytes(content["directory_id"])
    except (ValueError, KeyError, TypeError, AttributeError, SuiroError) as error:
        raise InvalidConfig(f"{path} is damaged: {error!r}") from None
    return Introduction(node_id, directory_id, bool(founders), founders or None)


def _save_note(fs: Fs, data_dir: Path, me: Introduction) -> None:
    content = {
        "node_id": me.node_id,
        "directory_id": id_text(me.directory_id),
        "founders": {str(node): id_text(d) for node, d in (me.founders or {}).items()},
    }
    replace_file(fs, data_dir / NOTE_FILE, json.dumps(content, indent=1).encode() + b"\n")
