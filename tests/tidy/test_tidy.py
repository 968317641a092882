"""Rules about the tree itself: sizes, purity, and tables that must agree."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from suiro._proto import (
    admin_pb2,
    broker_pb2,
    common_pb2,
    controller_pb2,
    founding_pb2,
    groupcoord_pb2,
    node_pb2,
    raft_pb2,
    txncoord_pb2,
)
from suiro.model.error_base import ErrorCode
from suiro.transport import methods
from suiro.transport.api import Kind, Method

ROOT = Path(__file__).parents[2]
LINES_MAX = 500

PURE = {
    "clients/suiro/model": "*",
    "cluster": "founding",
    "clients/suiro": "accumulator cluster_view diagnosis even_out explain fetch_buffer "
    "membership murmur nearest partitioner placing reassign_plan retry sequences transaction",
    "cluster/groupcoord": "assignor codec group machine members offsets rebalance reconcile "
    "records requests sessions subscriptions wire",
    "cluster/txncoord": "codec end expire init machine partitions producer_ids records requests "
    "shared table txn",
    "cluster/host": "machine timers",
    "spark_connector/pyspark_suiro": "errors filters offsets options schema sink_options",
    "cluster/log": "index epochs producers aborted retention clean_plan compaction offset_map",
    "cluster/broker": "leader follower replication_effects replication_progress throttle visible",
    "cluster/controller_quorum": "raft raft_log raft_state messages conf election replication "
    "progress quorum reads metadata metadata_topics metadata_isr metadata_nodes metadata_configs "
    "metadata_shards placement sessions elections reassignment",
}
PURE_FILES = [
    path
    for folder, names in PURE.items()
    for name in names.split()
    for path in sorted((ROOT / folder).glob(f"{name}.py"))
]
IMPURE_MODULES = {
    "asyncio", "datetime", "logging", "os", "pathlib", "random", "secrets", "select",
    "shutil", "signal", "socket", "subprocess", "sys", "tempfile", "threading", "time", "uuid",
}  # fmt: skip

ALLOWED = {"compression": {"threading"}}  # a compressor's context belongs to one thread


def _sources() -> list[Path]:
    roots = ("clients", "cluster", "spark_connector", "tests", "bench", "proto", "examples")
    return [
        path
        for root in roots
        for path in sorted((ROOT / root).rglob("*.py"))
        if "_proto" not in path.parts
    ]


def test_no_file_is_longer_than_one_sitting() -> None:
    long = {str(p.relative_to(ROOT)): n for p in _sources() if (n := _lines(p)) > LINES_MAX}
    assert not long


def _lines(path: Path) -> int:
    return path.read_text().count("\n")


@pytest.mark.parametrize("path", PURE_FILES, ids=lambda path: path.stem)
def test_pure_modules_import_nothing_of_the_world(path: Path) -> None:
    """Names that are only for type checkers are fine: they do nothing at run time."""
    found = set()
    for node in _runtime_nodes(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    assert not found & IMPURE_MODULES - ALLOWED.get(path.stem, set())


def _runtime_nodes(tree: ast.AST) -> list[ast.AST]:
    nodes: list[ast.AST] = []
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        nodes += [child, *_runtime_nodes(child)]
    return nodes


def test_error_codes_are_those_of_the_contract() -> None:
    assert dict(common_pb2.ErrorCode.items()) == {code.name: code.value for code in ErrorCode}


def test_methods_are_those_of_the_contract() -> None:
    ours = {}
    for holder in vars(methods).values():
        if isinstance(holder, type) and holder.__name__.endswith("Methods"):
            for method in vars(holder).values():
                if isinstance(method, Method):
                    ours[method.name] = method.kind
    theirs = {}
    for module in (
        admin_pb2, broker_pb2, controller_pb2, founding_pb2, groupcoord_pb2, node_pb2, raft_pb2,
        txncoord_pb2,
    ):  # fmt: skip
        for service in module.DESCRIPTOR.services_by_name.values():
            for rpc in service.methods:
                kind = Kind.UNARY
                if rpc.client_streaming:
                    kind = Kind.BIDIRECTIONAL
                elif rpc.server_streaming:
                    kind = Kind.SERVER_STREAM
                theirs[f"/{service.full_name}/{rpc.name}"] = kind
    assert ours == theirs


def test_nothing_names_this_machine_or_a_registry() -> None:
    """No path of a developer's machine, no download address."""
    here = re.escape(str(ROOT.parent) + "/") if ROOT.parent != Path("/") else re.escape(str(ROOT))
    suspicious = re.compile(rf"{here}|pypi\.org|files\.pythonhosted|registry\.npmjs|repo1\.maven")
    files = [*_sources(), *ROOT.glob("*.*"), *ROOT.glob("docs/**/*.md")]
    offenders = [
        str(path.relative_to(ROOT))
        for path in files
        if path.is_file() and path != Path(__file__) and suspicious.search(path.read_text())
    ]
    assert not offenders
