"""What a node is told at its start; everything else is learnt from the quorum.

A node's settings come from a TOML file (`python -m cluster --config node.toml`) or are built by
`suiro up`. Settings that may change while the cluster runs are not here: they are metadata.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from suiro.model.errors import InvalidConfig
from suiro.model.ids import Address, NodeId
from suiro.model.topics import SHARDS_DEFAULT

if TYPE_CHECKING:
    from collections.abc import Mapping

ROLES: Final = ("controller", "broker", "group", "txn")
LOG_FORMATS: Final = ("human", "json")
LOG_LEVELS: Final = ("info", "debug")
FIRST_NODE_ID: Final = "first_node_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    """One node."""

    node_id: NodeId
    cluster_id: str = ""
    """Of the cluster it belongs to; a directory of another one is refused. Needed to format."""
    roles: tuple[str, ...]
    data_dir: Path
    """Where the node keeps its identity, its part of the quorum's log and, unless `log_dirs` says
    otherwise, its partitions."""
    listen: Address
    advertise: Address | None = None
    """What others are told to connect to; `listen` if nothing else is said."""
    controllers: tuple[Address, ...] = ()
    """Where the quorum is found; empty on a node that is the whole quorum itself."""
    log_dirs: tuple[Path, ...] = ()
    rack: str = ""
    metrics_port: int | None = None
    """Where /metrics and /health are served, on the host of `listen`; 0 takes a free port, which is
    logged, and absent means not at all."""
    session_timeout_ms: int = 3_000
    election_timeout_ms: int = 300
    """How long a controller is silent before the others elect; the true time is up to twice it."""
    quorum_snapshot_entries: int = 20_000
    """The metadata log is shortened when it has grown by so many entries or bytes."""
    quorum_snapshot_bytes: int = 64 << 20
    offsets_partitions: int = SHARDS_DEFAULT
    """Of __consumer_offsets, if it is this node that makes it; never changes afterwards."""
    transactions_partitions: int = SHARDS_DEFAULT
    """The same of __transaction_state."""
    internal_replication_factor: int = 3
    """Of both. They are made as soon as there are so many brokers."""
    log_format: str = "human"
    """Or `json`: an object per line."""
    log_level: str = "info"
    """Or `debug`: every call that is answered, with its request."""
    traces_to: str = ""
    """An OpenTelemetry collector (OTLP over gRPC), http://host:4317; empty: no spans are made."""
    event_log: Path | None = None
    """A file for what this node did, one JSON object per line; None writes none."""

    def __post_init__(self) -> None:
        unknown = sorted(set(self.roles) - set(ROLES))
        if unknown or not self.roles:
            raise InvalidConfig(f"roles {', '.join(unknown) or '(none)'}: choose from {ROLES}")
        if self.node_id < 0:
            raise InvalidConfig(f"node_id is {self.node_id}; it must be 0 or more")
        if self.log_format not in LOG_FORMATS or self.log_level not in LOG_LEVELS:
            raise InvalidConfig(f"log_format is one of {LOG_FORMATS}, log_level of {LOG_LEVELS}")
        if "controller" not in self.roles and not self.controllers:
            raise InvalidConfig("a node without the role controller needs `controllers`")

    @property
    def advertised(self) -> Address:
        return self.advertise or self.listen

    @property
    def log_directories(self) -> tuple[Path, ...]:
        return self.log_dirs or (self.data_dir / "log",)

    @classmethod
    def from_toml(
        cls, path: Path, *, name: str | None = None, over: Mapping[str, str] | None = None
    ) -> NodeConfig:
        """Read a file; every complaint names the file and the key.

        Nodes of one kind may share a file that has `first_node_id` instead of `node_id`: the
        number at the end of a node's `name` (broker-2) is added to it. What is in `over` counts
        more than the file.
        """
        try:
            given = tomllib.loads(path.read_text())
        except (OSError, tomllib.TOMLDecodeError) as error:
            raise InvalidConfig(f"{path}: {error}") from None
        if FIRST_NODE_ID in given:
            given["node_id"] = given.pop(FIRST_NODE_ID) + _ordinal(path, name)
        given.update(over or {})
        known = {f.name for f in fields(cls)}
        unknown = sorted(given.keys() - known)
        if unknown:
            raise InvalidConfig(
                f"{path}: unknown keys {', '.join(unknown)}; known are {sorted(known)}"
            )
        missing = sorted({"node_id", "roles", "data_dir", "listen"} - given.keys())
        if missing:
            raise InvalidConfig(f"{path}: missing keys {', '.join(missing)}")
        return cls(**{key: _convert(key, value) for key, value in given.items()})


def _ordinal(path: Path, name: str | None) -> int:
    found = re.search(r"-(\d+)$", name or "")
    if found is None:
        raise InvalidConfig(
            f"{path} has {FIRST_NODE_ID}, so the node needs a name that ends in its number, "
            f"as broker-0 does; it is called '{name or ''}'"
        )
    return int(found[1])


def parse_address(text: str) -> Address:
    """`host:port`."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise InvalidConfig(f"'{text}' is not host:port")
    return Address(host.strip("[]"), int(port))


def _convert(key: str, value: Any) -> Any:
    match key:
        case "listen" | "advertise":
            return parse_address(value)
        case "controllers":
            return tuple(parse_address(item) for item in value)
        case "data_dir" | "event_log":
            return Path(value)
        case "log_dirs":
            return tuple(Path(item) for item in value)
        case "roles":
            return tuple(value)
        case _:
            return value
