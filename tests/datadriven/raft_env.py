"""The quorum as a transcript sees it: members, a mailbox that delivers only what it is told to.

The members are those of the simulation, disks that forget and invariants included; only time and
the network are in the hands of the transcript. Directories are named a, b, c … per node; a message
of directory a is written without it.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from suiro.model.error_base import SuiroError
from suiro.model.ids import NodeId

from cluster.controller_quorum.conf import (
    NOBODY,
    ConfChange,
    ConfChangeKind,
    ConfState,
    DirectoryId,
    Member,
)
from cluster.controller_quorum.messages import Message, Ready, Snapshot, Stored
from cluster.controller_quorum.raft_state import RaftConfig, Role
from tests.sim.raft_checker import RaftChecker
from tests.sim.raft_node import Node
from tests.sim.raft_world import describe

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.sim.raft_disk import Disk

DELIVERIES_MAX = 1000


class RaftEnv:
    """One quorum; `run` carries out one command and returns what there is to say."""

    def __init__(self) -> None:
        self.config = RaftConfig()
        self.random = Random(0)
        self.nodes: dict[int, Node] = {}
        self.disks: dict[Member, Disk] = {}
        self.checker = RaftChecker(self.disks)
        self.mailbox: list[Message] = []
        self.cut: set[tuple[int, int]] = set()
        self.slow: set[int] = set()
        self.commands: dict[str, Callable[[list[str]], str]] = {
            "add-nodes": self.add_nodes,
            "campaign": self.campaign,
            "compact": self.compact,
            "conf-change": self.conf_change,
            "crash": self.crash,
            "deliver": self.deliver,
            "drop": self.drop,
            "forget-leader": self.forget_leader,
            "heal": self.heal,
            "log": self.log,
            "partition": self.partition,
            "propose": self.propose,
            "read-index": self.read_index,
            "restart": self.restart,
            "slow-disk": self.slow_disk,
            "stabilize": self.stabilize,
            "status": self.status,
            "sync": self.sync,
            "tick": self.tick,
            "transfer": self.transfer,
            "wipe": self.wipe,
        }

    def run(self, command: str, arguments: list[str]) -> str:
        try:
            return self.commands[command](arguments) or "ok"
        except SuiroError as error:
            return f"refused: {type(error).__name__}: {error.message}"

    # -- the shell of a node ----------------------------------------------------------------------

    def send(self, message: Message) -> None:
        if (message.source.node, message.target.node) not in self.cut:
            self.mailbox.append(message)

    def write_soon(self, node: Node, ready: Ready) -> bool:
        return node.member.node in self.slow and ready.must_sync

    # -- members ----------------------------------------------------------------------------------

    def member(self, text: str) -> Member:
        """`2` is the member that node 2 is now; `2b` names a directory."""
        digits = text.rstrip("abcdefgh")
        directory = text[len(digits) :]
        node = NodeId(int(digits))
        if not directory and node in self.nodes:
            return self.nodes[node].member
        return Member(node, DirectoryId(directory or "a"))

    def node(self, text: str) -> Node:
        return self.nodes[int(text)]

    def start_node(self, member: Member, conf: ConfState) -> None:
        stored = Stored(snapshot=Snapshot(conf=conf))
        node = Node(member, stored, self.config, self.random, self.checker, self)
        self.nodes[member.node] = node
        self.disks[member] = node.disk
        node.start()

    def add_nodes(self, arguments: list[str]) -> str:
        """`add-nodes 1 2 3 founders` founds a quorum; without the word they join an existing one.
        `name=number` sets a field of the configuration first.
        """
        settings = dict(word.split("=") for word in arguments if "=" in word)
        if settings:
            fields: dict[str, Any] = {name: int(value) for name, value in settings.items()}
            self.config = RaftConfig(**fields)
        members = [self.member(word) for word in arguments if word[0].isdigit()]
        conf = ConfState(tuple(members)) if "founders" in arguments else NOBODY
        for member in members:
            self.start_node(member, conf)
        return ""

    def crash(self, arguments: list[str]) -> str:
        """The power fails: what was not synced is gone, without exception."""
        for text in arguments:
            node = self.node(text)
            node.writing = None
            node.disk.forget()
            node.crash()
        return ""

    def restart(self, arguments: list[str]) -> str:
        for text in arguments:
            self.node(text).start()
        return ""

    def wipe(self, arguments: list[str]) -> str:
        """The node loses its disk and starts on the next directory, empty."""
        for text in arguments:
            node = self.node(text)
            if node.is_up:
                self.crash([text])
            old = node.member
            directory = DirectoryId(chr(ord(old.directory) + 1))
            self.start_node(Member(old.node, directory), NOBODY)
        return ""

    def slow_disk(self, arguments: list[str]) -> str:
        """From now on a synced write of these nodes waits for `sync`."""
        self.slow.update(int(text) for text in arguments)
        return ""

    def sync(self, arguments: list[str]) -> str:
        for text in arguments:
            node = self.node(text)
            self.slow.discard(node.member.node)
            if node.writing is not None:
                node.finish(node.writing)
        return ""

    # -- the network ------------------------------------------------------------------------------

    def _matching(self, arguments: list[str]) -> list[Message]:
        """Filters: `from=1`, `to=2,3`, `kind=append`; `first=2` takes no more than two."""
        filters = dict(word.split("=") for word in arguments if "=" in word)
        most = int(filters.pop("first", DELIVERIES_MAX))

        def fits(message: Message) -> bool:
            facts = {
                "from": str(message.source.node),
                "to": str(message.target.node),
                "kind": message.kind.name.lower(),
            }
            return all(facts[name] in wanted.split(",") for name, wanted in filters.items())

        return [message for message in self.mailbox if fits(message)][:most]

    def _take(self, arguments: list[str]) -> list[Message]:
        taken = self._matching(arguments)
        self.mailbox = [m for m in self.mailbox if not any(m is t for t in taken)]
        return taken

    def deliver(self, arguments: list[str]) -> str:
        """What is in the mailbox now; answers to it come in afterwards."""
        told = []
        for message in self._take(arguments):
            told.append(self._tell(message))
            node = self.nodes.get(message.target.node)
            if node is not None and node.is_up:
                node.step(message)
        return "\n".join(told)

    def drop(self, arguments: list[str]) -> str:
        return "\n".join(f"lost: {self._tell(message)}" for message in self._take(arguments))

    def stabilize(self, arguments: list[str]) -> str:
        """Deliver until nothing is left; `quiet` says only how the members stand afterwards."""
        told: list[str] = []
        for _ in range(DELIVERIES_MAX):
            if not self.mailbox:
                return self.status([]) if "quiet" in arguments else "\n".join(told)
            told.append(self.deliver([]))
        raise AssertionError("the members never come to rest")

    def partition(self, arguments: list[str]) -> str:
        """`partition 1 | 2 3` cuts every link between the groups; `1 > 2` only that direction."""
        if ">" in arguments:
            at = arguments.index(">")
            self.cut |= {(int(a), int(b)) for a in arguments[:at] for b in arguments[at + 1 :]}
        else:
            groups = [group.split() for group in " ".join(arguments).split("|")]
            for here in groups:
                for there in groups:
                    if here is not there:
                        self.cut |= {(int(a), int(b)) for a in here for b in there}
        self.mailbox = [m for m in self.mailbox if (m.source.node, m.target.node) not in self.cut]
        return ""

    def heal(self, _: list[str]) -> str:
        self.cut.clear()
        return ""

    # -- facts ------------------------------------------------------------------------------------

    def tick(self, arguments: list[str]) -> str:
        """`tick 1` or `tick 1 25`."""
        node = self.node(arguments[0])
        for _ in range(int(arguments[1]) if len(arguments) > 1 else 1):
            node.tick()
        return ""

    def forget_leader(self, arguments: list[str]) -> str:
        """These members have heard no leader for an election timeout: their lease is over."""
        for text in arguments:
            self.node(text).raft.election_elapsed = self.config.election_ticks
        return ""

    def campaign(self, arguments: list[str]) -> str:
        node = self.node(arguments[0])
        node.raft.campaign()
        node.run()
        return ""

    def propose(self, arguments: list[str]) -> str:
        node = self.node(arguments[0])
        node.propose([word.encode() for word in arguments[1:]])
        last = node.raft.log.last
        return "appends " + self._entries(node, last - len(arguments) + 2)

    def conf_change(self, arguments: list[str]) -> str:
        """`conf-change 1 promote 4`."""
        node = self.node(arguments[0])
        kind = ConfChangeKind[arguments[1].upper().replace("-", "_")]
        node.raft.propose_conf(ConfChange(kind, self.member(arguments[2])))
        node.run()
        return f"{self._conf(node.raft.conf)}"

    def transfer(self, arguments: list[str]) -> str:
        node = self.node(arguments[0])
        node.raft.transfer(self.member(arguments[1]))
        node.run()
        return ""

    def read_index(self, arguments: list[str]) -> str:
        """`read-index 1 x`; the member's status shows it once it may be served."""
        self.node(arguments[0]).read(arguments[1].encode())
        return f"{self.checker.reads_served} reads served"

    def compact(self, arguments: list[str]) -> str:
        node = self.node(arguments[0])
        node.compact()
        return f"snapshot at {node.raft.log.snapshot.index}, first entry {node.raft.log.base + 1}"

    # -- looking ----------------------------------------------------------------------------------

    def status(self, arguments: list[str]) -> str:
        nodes = [self.node(text) for text in arguments] or list(self.nodes.values())
        return "\n".join(self._status(node) for node in nodes)

    def log(self, arguments: list[str]) -> str:
        return "\n".join(
            f"{text}: {self._entries(self.node(text), self.node(text).raft.log.base + 1)}"
            for text in arguments
        )

    def _status(self, node: Node) -> str:
        name = _short(str(node.member))
        if not node.is_up:
            return f"{name} down"
        raft, log = node.raft, node.raft.log
        led_by = None if raft.role is Role.LEADER else raft.leader
        leader = "" if led_by is None else f" of {led_by.node}"
        vote = "-" if raft.vote is None else str(raft.vote.node)
        return (
            f"{name} {raft.role.value}{leader} term={raft.term} vote={vote}"
            f" last={log.last}.{log.last_term} commit={log.commit} {self._conf(raft.conf)}"
        )

    @staticmethod
    def _conf(conf: ConfState) -> str:
        voters = " ".join(_short(str(member)) for member in conf.voters)
        learners = " ".join(_short(str(member)) for member in conf.learners)
        return f"({voters}{' + ' + learners if learners else ''})"

    @staticmethod
    def _entries(node: Node, first: int) -> str:
        log = node.raft.log
        entries = log.slice(first, 1 << 20) if first <= log.last else ()
        return " ".join(f"{e.index}.{e.term}{_content(e.kind.name, e.data)}" for e in entries)

    @staticmethod
    def _tell(message: Message) -> str:
        return _short(describe(message))


def _short(text: str) -> str:
    return text.replace("/a", "").replace("/", "")


def _content(kind: str, data: bytes) -> str:
    return f"={data.decode()}" if kind == "NORMAL" else f"={kind.lower()}"
