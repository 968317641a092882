"""How nodes introduce themselves, and whom they let speak."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suiro._proto.common_pb2 import Hello, HelloReply
from suiro.model.errors import ClusterIdMismatch, UnsupportedVersion
from suiro.version import PROTOCOL_MAX, PROTOCOL_MIN, SOFTWARE

if TYPE_CHECKING:
    from suiro.model.ids import NodeId


def make_hello(cluster_id: str, node_id: NodeId) -> Hello:
    return Hello(
        protocol_min=PROTOCOL_MIN,
        protocol_max=PROTOCOL_MAX,
        software=SOFTWARE,
        cluster_id=cluster_id,
        node_id=node_id,
    )


def check_hello(hello: Hello, cluster_id: str, node_id: NodeId) -> HelloReply:
    """The answer to a node that may speak; raises ClusterIdMismatch or UnsupportedVersion."""
    check_cluster(hello.cluster_id, cluster_id)
    return greet_client(hello, cluster_id, node_id)


def greet_client(hello: Hello, cluster_id: str, node_id: NodeId) -> HelloReply:
    """The answer to a client, who may not know yet which cluster this is."""
    if hello.cluster_id:
        check_cluster(hello.cluster_id, cluster_id)
    protocol = min(hello.protocol_max, PROTOCOL_MAX)
    if protocol < max(hello.protocol_min, PROTOCOL_MIN):
        raise UnsupportedVersion(
            f"{hello.software or 'the caller'} speaks protocol {hello.protocol_min} to "
            f"{hello.protocol_max}, this node {PROTOCOL_MIN} to {PROTOCOL_MAX}"
        )
    return HelloReply(protocol=protocol, cluster_id=cluster_id, node_id=node_id)


def check_cluster(theirs: str, ours: str) -> None:
    if theirs != ours:
        raise ClusterIdMismatch(f"this is cluster {ours}, the other side is of '{theirs}'")
