"""Finding the coordinator of a group or a transactional id, and calling it until it answers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from suiro._proto import groupcoord_pb2 as group_pb
from suiro._proto import txncoord_pb2 as txn_pb
from suiro.attempts import until_done
from suiro.model.error_base import SuiroError
from suiro.model.errors import ConcurrentTransaction
from suiro.model.ids import Address
from suiro.retry import Backoff
from suiro.transport.methods import GroupCoordinatorMethods, TxnCoordinatorMethods

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from suiro._proto.common_pb2 import NodeAddress
    from suiro.connection import Connection
    from suiro.transport.api import Method

Q = TypeVar("Q")
R = TypeVar("R")

CALL_TIMEOUT_S = 2.0
"""One that hangs is replaced when its session as a node ends, after 3 s: asked a second time at
most, the caller is with the next one soon after.
"""

AGAIN_S_MAX = 0.2
"""Between two questions while a coordinator is being replaced, which takes about a second."""

COMPLETING_S = 0.005
"""The markers of the transaction before are on their way: a matter of milliseconds."""


class Coordinators:
    """Of one kind; `groups` and `transactions` make them. Remembers who owned a name last."""

    def __init__(
        self,
        connection: Connection,
        ask: Callable[[str, float], Awaitable[tuple[Address | None, list[Address]]]],
    ) -> None:
        self._connection = connection
        self._ask = ask
        self._owners: dict[str, Address] = {}

    async def owner(self, name: str, *, timeout_s: float) -> Address:
        """Where the coordinator of this name is; waits while nobody owns it."""
        if name not in self._owners:
            found, _ = await self._ask(name, timeout_s)
            assert found is not None, "a name has one owner, or an error is raised"
            self._owners[name] = found
        return self._owners[name]

    def forget(self, name: str) -> None:
        """It may have moved."""
        self._owners.pop(name, None)

    async def call(self, name: str, method: Method[Q, R], request: Q, *, timeout_s: float) -> R:
        """Ask the owner; retriable errors are retried until the deadline.

        A call that timed out may have been carried out, so a request must bear being made twice.
        """

        async def attempt() -> R:
            while True:
                address = await self.owner(name, timeout_s=timeout_s)
                try:
                    return await self._connection.transport.call(
                        address, method, request, timeout_s=min(timeout_s, CALL_TIMEOUT_S)
                    )
                except ConcurrentTransaction:
                    await asyncio.sleep(COMPLETING_S)
                except SuiroError:
                    self.forget(name)
                    raise

        return await until_done(
            attempt,
            timeout_s=timeout_s,
            backoff=Backoff(self._connection.rng, most_s=AGAIN_S_MAX),
            late=f"{method} was not answered in {timeout_s:g} s",
        )

    async def call_everyone(
        self, method: Method[Q, R], request: Q, *, timeout_s: float
    ) -> list[tuple[Address, R]]:
        """Ask all coordinators of this kind. If one cannot answer yet, such as while it takes a
        shard over, all are asked again: an answer without its part would look complete.
        """

        async def attempt() -> list[tuple[Address, R]]:
            _, everyone = await self._ask("", timeout_s)
            call = self._connection.transport.call
            replies = await asyncio.gather(
                *(call(address, method, request, timeout_s=CALL_TIMEOUT_S) for address in everyone)
            )
            return list(zip(everyone, replies, strict=True))

        return await until_done(
            attempt,
            timeout_s=timeout_s,
            backoff=Backoff(self._connection.rng, most_s=AGAIN_S_MAX),
            late=f"{method} was not answered by all in {timeout_s:g} s",
        )


def groups(connection: Connection) -> Coordinators:
    async def ask(name: str, timeout_s: float) -> tuple[Address | None, list[Address]]:
        reply = await connection.any_broker(
            GroupCoordinatorMethods.FIND_COORDINATOR,
            group_pb.FindGroupCoordinatorRequest(group=name),
            timeout_s=timeout_s,
        )
        owner = _address(reply.coordinator) if name else None
        return owner, [_address(each) for each in reply.coordinators]

    return Coordinators(connection, ask)


def transactions(connection: Connection) -> Coordinators:
    async def ask(name: str, timeout_s: float) -> tuple[Address | None, list[Address]]:
        reply = await connection.any_broker(
            TxnCoordinatorMethods.FIND_COORDINATOR,
            txn_pb.FindTxnCoordinatorRequest(transactional_id=name),
            timeout_s=timeout_s,
        )
        owner = _address(reply.coordinator) if name else None
        return owner, [_address(each) for each in reply.coordinators]

    return Coordinators(connection, ask)


def _address(node: NodeAddress) -> Address:
    return Address(node.host, node.port)
