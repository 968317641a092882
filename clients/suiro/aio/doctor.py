"""Visits the addresses that a client was given, and every node that it would be told of."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import TYPE_CHECKING, Final

from suiro._proto import node_pb2 as pb
from suiro.aio.admin import Admin
from suiro.cluster_view import problems
from suiro.diagnosis import (
    Door,
    Finding,
    Visit,
    judge_bootstrap,
    judge_clocks,
    judge_nodes,
    judge_problems,
    judge_versions,
)
from suiro.model.error_base import SuiroError
from suiro.model.ids import NodeId
from suiro.transport.methods import NodeMethods

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suiro.client_env import ClientEnv
    from suiro.model.ids import Address

CONNECT_S: Final = 3.0
LOOK_S: Final = 10.0


async def examine(bootstrap: Sequence[Address], env: ClientEnv) -> list[Finding]:
    """Everything that can be found out from here."""
    first = await asyncio.gather(*(visit(address, env) for address in bootstrap))
    findings = judge_bootstrap(first)
    doors = [v for v in first if v.door is Door.NODE and "broker" in v.roles]
    met = list(first)
    if doors:
        admin = Admin(",".join(str(v.address) for v in doors), timeout_s=LOOK_S, env=env)
        try:
            view = await admin.look()
        except SuiroError as error:
            return [*findings, Finding("error", "quorum", "cluster", str(error))]
        addresses = {node.node_id: node.address for node in view.nodes}
        addresses |= {voter.node_id: voter.address for voter in view.quorum}
        visits = await asyncio.gather(*(visit(address, env) for address in addresses.values()))
        findings += judge_nodes(dict(zip(addresses, visits, strict=True)))
        findings += judge_problems(problems(view))
        met += visits
    return [*findings, *judge_clocks(met), *judge_versions(met)]


async def visit(address: Address, env: ClientEnv) -> Visit:
    """Who is there."""
    door = await _knock(address)
    if door is not Door.NODE:
        return Visit(address, door)
    asked_ms = env.now_ms()
    try:
        reply = await env.transport.call(
            address, NodeMethods.DESCRIBE, pb.DescribeNodeRequest(), timeout_s=CONNECT_S
        )
    except SuiroError as error:
        return Visit(address, await _what_else(address), error.message)
    answered_ms = env.now_ms()
    return Visit(
        address,
        Door.NODE,
        node_id=NodeId(reply.node_id),
        cluster_id=reply.cluster_id,
        roles=tuple(reply.roles),
        software=reply.software,
        ready=reply.ready,
        skew_ms=_certain_skew_ms(reply.now_ms, asked_ms, answered_ms),
    )


async def _knock(address: Address) -> Door:
    try:
        async with asyncio.timeout(CONNECT_S):
            _, writer = await asyncio.open_connection(address.host, address.port)
    except socket.gaierror:
        return Door.NO_SUCH_NAME
    except ConnectionRefusedError:
        return Door.REFUSED
    except (OSError, TimeoutError):
        return Door.SILENT
    writer.close()
    return Door.NODE


async def _what_else(address: Address) -> Door:
    """Somebody listens there who does not speak as our nodes do."""
    if await _speaks_tls(address):
        return Door.TLS
    return Door.HTTP if await _speaks_http(address) else Door.OTHER


async def _speaks_tls(address: Address) -> bool:
    """Whether a handshake is answered by one; whose certificate it is does not matter here."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    try:
        async with asyncio.timeout(CONNECT_S):
            _, writer = await asyncio.open_connection(address.host, address.port, ssl=context)
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")  # it refuses, in TLS
    except (OSError, TimeoutError):
        return False
    writer.transport.abort()
    return True


async def _speaks_http(address: Address) -> bool:
    try:
        async with asyncio.timeout(CONNECT_S):
            reader, writer = await asyncio.open_connection(address.host, address.port)
            try:
                writer.write(b"GET /health HTTP/1.0\r\n\r\n")
                return (await reader.read(7)) == b"HTTP/1."
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False


def _certain_skew_ms(theirs_ms: int, asked_ms: int, answered_ms: int) -> int:
    """Zero if their reading may have been taken while ours was under way."""
    if theirs_ms > answered_ms:
        return theirs_ms - answered_ms
    return min(theirs_ms - asked_ms, 0)
