"""What the runs against consumer groups share: members in processes, load, and their history."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from suiro.aio import Admin
from suiro.verify.groups import Event, Kind, check, ownerships

from tests.cluster.group_member import JournalReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from suiro.verify.groups import Ownership

GROUP = "g"
TOPIC = "orders"
WAIT_S = 60.0
END_S = 20.0
LOOK_S = 0.05


class Crowd:
    """Processes with members in them, and everything that any of them has written down."""

    def __init__(self, bootstrap: str, directory: Path, **settings: Any) -> None:
        self._bootstrap = bootstrap
        self._directory = directory
        self._settings = json.dumps(settings)
        self._journals: list[JournalReader] = []
        self._journal_of: dict[str, JournalReader] = {}
        self._own: list[Event] = []
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.running: set[str] = set()
        """The members that were told to be there."""

    def start(self, *members: str, join: bool = True) -> None:
        """One process with these members in it, who join at once or when they are told to."""
        journal = self._directory / f"history-{len(self._journals)}.jsonl"
        self._journals.append(JournalReader(journal))
        command = [sys.executable, "-m", "tests.cluster.group_member", self._bootstrap, GROUP]
        process = subprocess.Popen(
            [*command, TOPIC, str(journal), self._settings], stdin=subprocess.PIPE
        )
        for member in members:
            self._processes[member] = process
            self._journal_of[member] = self._journals[-1]
            if join:
                self.order("join", member)

    def is_up(self, member: str) -> bool:
        """Whether its process has loaded all that it needs, and takes orders."""
        return self._journal_of[member].is_begun

    def order(self, what: str, member: str) -> None:
        """`join` or `leave`: the process lives on."""
        if what == "join":
            self.running.add(member)
        else:
            self.running.remove(member)
        self._tell(what, member)

    def _tell(self, what: str, member: str) -> None:
        pipe = self._processes[member].stdin
        assert pipe is not None
        pipe.write(f"{what} {member}\n".encode())
        pipe.flush()

    def kill(self, member: str) -> float:
        """kill -9 of the process; when that was."""
        process = self._processes[member]
        process.kill()
        process.wait()
        killed_s = self._gone(process)  # until it was dead it may rightly have been given records
        assert process.stdin is not None
        process.stdin.close()
        self.running -= {name for name, its in self._processes.items() if its is process}
        return killed_s

    def freeze(self, member: str) -> float:
        """The process hangs from now on, with its connections open.

        It stops itself, between two turns of its loop. A signal from here could come in the middle
        of one, when a poll has looked at the session and what it returns is not noted yet: such
        records were rightly given, and would be noted when it wakes up.
        """
        process = self._processes[member]
        self._tell("hang", member)
        # Until it stands still it may rightly be given records.
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        return self._gone(process)

    def thaw(self, member: str) -> None:
        self._processes[member].send_signal(signal.SIGCONT)

    def _gone(self, process: subprocess.Popen[bytes]) -> float:
        now_s = time.monotonic()
        for name in (name for name, its in self._processes.items() if its is process):
            self._own.append(Event(now_s, name, Kind.GONE))
        return now_s

    def add(self, event: Event) -> None:
        self._own.append(event)

    def events(self) -> list[Event]:
        return [*self._own, *(e for journal in self._journals for e in journal.events())]

    def events_after(self, at_s: float) -> list[Event]:
        """What members wrote since, without looking through all that was before."""
        return [
            event
            for journal in self._journals
            for event in takewhile(lambda e: e.at_s > at_s, reversed(journal.events()))
        ]

    def close(self) -> None:
        """Everybody leaves in order; whoever does not is killed."""
        processes = {process for process in self._processes.values() if process.poll() is None}
        self.running.clear()
        for process in processes:
            process.send_signal(signal.SIGCONT)
            assert process.stdin is not None
            process.stdin.close()
        for process in processes:
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def owners(events: Iterable[Event]) -> dict[str, Ownership]:
    """Who has which partition now."""
    return {
        partition: spans[-1]
        for partition, spans in ownerships(events).items()
        if spans[-1].ended_s is None
    }


async def until(is_so: Callable[[], bool], what: str, timeout_s: float = WAIT_S) -> None:
    """Histories are files of other processes: there is nothing to wait for but the time."""
    began_s = time.monotonic()
    while not is_so():
        assert time.monotonic() - began_s < timeout_s, f"not within {timeout_s} s: {what}"
        await asyncio.sleep(LOOK_S)


async def make_topic(bootstrap: str, partitions: int, replicas: int = 1) -> None:
    async with Admin(bootstrap) as admin:
        await admin.create_topic(TOPIC, partitions=partitions, replication_factor=replicas)


def is_unseen(crowd: Crowd, ends: dict[str, int]) -> bool:
    """Whether there is something left that nobody was given."""
    return any("unseen" in line for line in check(crowd.events(), ends))
