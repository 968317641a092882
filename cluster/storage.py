"""Whose a data directory is: the cluster, the node, and an id that is new with every formatting.

A directory is formatted once, before its node first starts. The identity is written last, so a
formatting that was cut short leaves a directory that counts as not formatted. A node that lost its
disk is formatted anew and gets another directory id: to the quorum it is another member, which
cannot vote for a past that it no longer knows (M7).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from suiro.model.errors import ClusterIdMismatch, InvalidConfig, InvalidRequest, NotFormatted
from suiro.model.ids import Address, NodeId

from cluster.controller_quorum.directory import ID_BYTES, id_bytes, id_text
from cluster.controller_quorum.raft_store import RaftStore, StoreOwner
from cluster.host.fs import read_file, replace_file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from random import Random

    from cluster.host.fs import Fs
    from cluster.host.store import Store

IDENTITY_FILE: Final = "identity.json"
QUORUM_STORE: Final = "quorum"
FORMAT_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Identity:
    """Of one data directory."""

    cluster_id: str
    node_id: NodeId
    directory_id: bytes

    @property
    def directory_name(self) -> str:
        return id_text(self.directory_id)


@dataclass(frozen=True, slots=True)
class Founder:
    """One of the controllers that make up the quorum before anything is agreed on."""

    node_id: NodeId
    directory_id: bytes
    address: Address


def random_cluster_id(random: Random) -> str:
    """22 characters that no other cluster has; never a leading `-`, which looks like an option."""
    while True:
        text = id_text(random.randbytes(ID_BYTES))
        if not text.startswith("-"):
            return text


def random_directory_id(random: Random) -> bytes:
    return random.randbytes(ID_BYTES)


def format_directory(
    fs: Fs,
    open_store: Callable[[Path], Store],
    data_dir: Path,
    identity: Identity,
    founders: Sequence[Founder] | None,
    *,
    ignore_formatted: bool = False,
) -> Identity:
    """Make `data_dir` the node's, and return whose it is now.

    `founders` are the first voters if the node is a controller, none of them if it is one that
    joins a running quorum, and None if it is no controller at all. A directory that has been
    formatted is refused; with `ignore_formatted` it is left as it is, if cluster and node agree.
    """
    id_bytes(identity.cluster_id)
    if fs.exists(data_dir / IDENTITY_FILE):
        found = load_identity(fs, data_dir, identity.cluster_id, identity.node_id)
        if not ignore_formatted:
            raise InvalidRequest(f"{data_dir} is formatted already, for cluster {found.cluster_id}")
        return found
    fs.make_directory(data_dir)
    if founders is not None:
        _format_quorum(open_store, data_dir, identity, founders)
    content = {
        "version": FORMAT_VERSION,
        "cluster_id": identity.cluster_id,
        "node_id": identity.node_id,
        "directory_id": identity.directory_name,
    }
    replace_file(fs, data_dir / IDENTITY_FILE, json.dumps(content, indent=1).encode() + b"\n")
    fs.sync_directory(data_dir.parent)
    return identity


def load_identity(
    fs: Fs, data_dir: Path, cluster_id: str | None = None, node_id: NodeId | None = None
) -> Identity:
    """Whose it is; raises NotFormatted, and a clear error if it is not whose it should be."""
    path = data_dir / IDENTITY_FILE
    if not fs.exists(path):
        raise NotFormatted(f"{data_dir} is not formatted")
    try:
        content = json.loads(read_file(fs, path))
        identity = Identity(
            str(content["cluster_id"]),
            NodeId(content["node_id"]),
            id_bytes(content["directory_id"]),
        )
        version = content["version"]
    except (ValueError, KeyError, TypeError, InvalidRequest) as error:
        raise InvalidConfig(f"{path} is damaged: {error!r}") from None
    if version != FORMAT_VERSION:
        raise InvalidConfig(f"{path} has version {version}; this software knows {FORMAT_VERSION}")
    if cluster_id is not None and identity.cluster_id != cluster_id:
        raise ClusterIdMismatch(
            f"{data_dir} belongs to cluster {identity.cluster_id}, not to {cluster_id}"
        )
    if node_id is not None and identity.node_id != node_id:
        raise InvalidConfig(f"{data_dir} belongs to node {identity.node_id}, not to node {node_id}")
    return identity


def _format_quorum(
    open_store: Callable[[Path], Store],
    data_dir: Path,
    identity: Identity,
    founders: Sequence[Founder],
) -> None:
    mine = [founder for founder in founders if founder.node_id == identity.node_id]
    if any(founder.directory_id != identity.directory_id for founder in mine):
        raise InvalidRequest(f"node {identity.node_id} is listed with another directory id")
    if founders and not mine:
        raise InvalidRequest(f"node {identity.node_id} is not among the first controllers")
    voters = {
        (founder.node_id, id_text(founder.directory_id)): founder.address for founder in founders
    }
    if len({node_id for node_id, _ in voters}) != len(founders):
        raise InvalidRequest("a node id stands twice among the first controllers")
    store = open_store(data_dir / QUORUM_STORE)
    try:
        owner = StoreOwner(identity.cluster_id, identity.node_id, identity.directory_name)
        RaftStore(store).format(owner, voters)
    finally:
        store.close()
