"""Adding and removing controllers and handing leadership over, at the leader.

A new controller joins as a learner and becomes a voter once it has caught up; a repeated request
goes on where the one before it stopped. A leader that is to be removed hands leadership over first
and lets its successor remove it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from suiro.model.errors import InvalidRequest, MembershipChangePending, NotController, TimedOut

from cluster.controller_quorum.conf import ConfChange, ConfChangeKind, Member
from cluster.controller_quorum.raft_state import Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from suiro.model.ids import Address, NodeId

    from cluster.controller_quorum.raft_driver import RaftDriver
    from cluster.controller_quorum.raft_peers import RaftPeers

CHANGE_TIMEOUT_S: Final = 30.0
TRANSFER_TIMEOUT_S: Final = 5.0
CHECK_S: Final = 0.02
CAUGHT_UP_ENTRIES: Final = 100
"""A learner this close to the end is promoted: under load it never is exactly there."""


class Membership:
    """What an operator may do to the quorum."""

    def __init__(self, driver: RaftDriver, peers: RaftPeers) -> None:
        self._driver = driver
        self._peers = peers

    async def add(self, address: Address, node_id: NodeId, directory: str) -> None:
        """Make the controller at `address` a voter; its identity is asked for and checked."""
        self._must_lead()
        member = await self._peers.who_is_at(address)
        if node_id >= 0 and member.node != node_id:
            raise InvalidRequest(f"node {member.node} is at {address}, not node {node_id}")
        if directory and member.directory != directory:
            raise InvalidRequest(f"{member} is at {address}, not directory {directory}")
        self._peers.set_address(member.node, address)
        async with _deadline(CHANGE_TIMEOUT_S, f"{member} has not caught up"):
            if member not in self._driver.raft.conf.members:
                await self._change(ConfChangeKind.ADD_LEARNER, member)
            while member not in self._driver.raft.conf.voters:
                await self._until(lambda: self._has_caught_up(member))
                await self._change(ConfChangeKind.PROMOTE, member)

    async def remove(self, node_id: NodeId, directory: str) -> None:
        self._must_lead()
        member = self._member(node_id)
        if directory and member.directory != directory:
            raise InvalidRequest(f"{member} is a member, not directory {directory}")
        if member == self._driver.raft.me:
            await self.transfer(None)
            raise NotController(self._driver.leader)
        async with _deadline(CHANGE_TIMEOUT_S, "the change is not committed"):
            await self._change(ConfChangeKind.REMOVE, member)

    async def transfer(self, to: NodeId | None) -> NodeId:
        """Hand leadership to a voter, or to whoever holds most; the new leader."""
        self._must_lead()
        raft = self._driver.raft
        if to == raft.me.node:
            return to
        target = self._most_advanced() if to is None else self._member(to)
        self._driver.transfer(target)
        async with _deadline(TRANSFER_TIMEOUT_S, f"{target} did not take over"):
            await self._until(lambda: raft.leader is not None and raft.leader != raft.me)
        assert raft.leader is not None
        return raft.leader.node

    async def _change(self, kind: ConfChangeKind, member: Member) -> None:
        """Propose until the change before this one is out of the way; wait for the commit."""
        position: int | None = None
        while position is None:
            self._must_lead()
            try:
                position = self._driver.propose_conf(ConfChange(kind, member))
            except MembershipChangePending:
                await asyncio.sleep(CHECK_S)
        end = position
        await self._until(lambda: self._driver.end >= end)

    async def _until(self, is_so: Callable[[], bool]) -> None:
        """Membership changes are rare: looking again is good enough, and survives everything."""
        while not is_so():
            if self._driver.raft.role is not Role.LEADER:
                if is_so():
                    return
                if self._driver.raft.leader is not None:
                    raise NotController(self._driver.leader)
            await asyncio.sleep(CHECK_S)

    def _has_caught_up(self, member: Member) -> bool:
        raft = self._driver.raft
        follower = raft.progress.get(member.node)
        return follower is not None and follower.match + CAUGHT_UP_ENTRIES >= raft.log.last

    def _most_advanced(self) -> Member:
        raft = self._driver.raft
        others = [voter for voter in raft.conf.voters if voter != raft.me]
        if not others:
            raise InvalidRequest("there is no other voter to hand leadership to")
        return max(others, key=lambda voter: (raft.progress[voter.node].match, -voter.node))

    def _member(self, node_id: NodeId) -> Member:
        for member in self._driver.raft.conf.members:
            if member.node == node_id:
                return member
        raise InvalidRequest(f"node {node_id} is no member of the quorum")

    def _must_lead(self) -> None:
        if self._driver.raft.role is not Role.LEADER:
            raise NotController(self._driver.leader)


class _deadline:  # noqa: N801 - reads like asyncio.timeout, which it is
    """`asyncio.timeout` that raises TimedOut and says what was waited for."""

    def __init__(self, seconds: float, waiting_for: str) -> None:
        self._timeout = asyncio.timeout(seconds)
        self._waiting_for = waiting_for

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(self, *raised: object) -> None:
        try:
            await self._timeout.__aexit__(*raised)  # type: ignore[arg-type]
        except TimeoutError:
            raise TimedOut(f"{self._waiting_for} in time") from None
