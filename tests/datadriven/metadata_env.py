"""The metadata machine as a transcript sees it: one line per record that a decision makes.

A partition prints as `orders-0: leader 1 epoch 0.0 isr 1,2,3`, where the epochs are leader epoch
and partition epoch; what is unusual (fewer replicas in sync, a mark, a reassignment) follows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suiro.model.error_base import SuiroError
from suiro.model.ids import (
    NO_BROKER_EPOCH,
    Address,
    BrokerEpoch,
    NodeId,
    PartitionEpoch,
    TopicId,
    TopicPartition,
)
from suiro.model.records import (
    ConfigResource,
    NodeRegistered,
    PartitionChanged,
    PartitionCreated,
    PartitionState,
    Recovery,
    Role,
    ShardOwned,
)

from cluster.controller_quorum.elections import find
from cluster.controller_quorum.metadata import MetadataMachine
from cluster.controller_quorum.metadata_requests import (
    Heartbeat,
    IsrMember,
    IsrProposal,
    Move,
    NewTopic,
    Registration,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from suiro.model.records import MetadataRecord

    from cluster.host.machine import Decision


class MetadataEnv:
    """One controller; `run` carries out one decision and returns its records."""

    def __init__(self) -> None:
        self.machine = MetadataMachine()
        self.made = 0
        self.commands: dict[str, Callable[[list[str], dict[str, str]], Decision[Any]]] = {
            "register": self.register,
            "ready": self.ready,
            "fence": self.fence,
            "leave": self.leave,
            "unregister": self.unregister,
            "create": self.create,
            "delete": self.delete,
            "add-partitions": self.add_partitions,
            "config": self.config,
            "isr": self.isr,
            "elect": self.elect,
            "balance": self.balance,
            "move": self.move,
            "cancel": self.cancel,
        }

    def run(self, command: str, arguments: list[str]) -> str:
        words = [word for word in arguments if "=" not in word]
        options = dict(word.split("=", 1) for word in arguments if "=" in word)
        if command == "show":
            return "\n".join(self.describe(find(self.machine.image, _named(w))) for w in words)
        try:
            decision = self.commands[command](words, options)
        except SuiroError as error:
            return f"{type(error).__name__}: {error.message}"
        for record in decision.records:
            self.machine.apply(record)
        lines = [self.record(record) for record in decision.records]
        lines += [f"effect: {effect}" for effect in decision.effects]
        lines += self.refusals(decision.reply)
        return "\n".join(lines) or "nothing"

    # -- commands ---------------------------------------------------------------------------------

    def register(self, words: list[str], options: dict[str, str]) -> Decision[Any]:
        """register NODE [clean] [while-alive] [at=HOST] [rack=R] [roles=broker,group,txn]"""
        node_id = NodeId(int(words[0]))
        known = self.machine.image.nodes.get(node_id)
        return self.machine.decide_register(
            Registration(
                node_id=node_id,
                incarnation=self.fresh_id(),
                roles=tuple(Role(role) for role in options.get("roles", "broker").split(",")),
                address=Address(options.get("at", f"host{node_id}"), 9000),
                rack=options.get("rack", ""),
                log_directories=("disk",),
                clean_shutdown="clean" in words,
                former_broker_epoch=BrokerEpoch(-1) if known is None else known.broker_epoch,
            ),
            session_alive="while-alive" in words,
        )

    def ready(self, words: list[str], options: dict[str, str]) -> Decision[Any]:
        return self.machine.decide_heartbeat(Heartbeat(*self.node(words[0], options)))

    def leave(self, words: list[str], options: dict[str, str]) -> Decision[Any]:
        node = self.node(words[0], options)
        return self.machine.decide_heartbeat(Heartbeat(*node, want_shutdown=True))

    def fence(self, words: list[str], options: dict[str, str]) -> Decision[Any]:
        return self.machine.decide_fence(*self.node(words[0], options))

    def unregister(self, words: list[str], options: dict[str, str]) -> Decision[Any]:
        return self.machine.decide_unregister(NodeId(int(words[0])))

    def create(self, words: list[str], options: dict[str, str]) -> Decision[Any]:
        """create TOPIC [1,2,3 …] [partitions=N] [replicas=N] [a.setting=value]"""
        name, *assignment = words
        topic = NewTopic(
            name=name,
            topic_id=TopicId(self.fresh_id()),
            partitions=int(options.pop("partitions", 0)),
            replication_factor=int(options.pop("replicas", 0)),
            assignment=tuple(_nodes(replicas) for replicas in assignment),
            configs=options,
        )
        return self.machine.decide_create_topics([topic])

    def delete(self, words: list[str], options: dict[str, str]) -> Decision[Any]:
        return self.machine.decide_delete_topics(words)

    def add_partitions(self, words: list[str], options: dict[str, str]) -> Decision[Any]:
        return self.machine.decide_add_partitions(words[0], int(words[1]))

    def config(self, words: list[str], options: dict[str, str]) -> Decision[Any]:
        return self.machine.decide_alter_config(ConfigResource.TOPIC, words[0], options)

    def isr(self, words: list[str], options: dict[str, str]) -> Decision[Any]:
        """isr PARTITION 1,2,3 [by=NODE] [late=N] [seen=NODE:BROKER_EPOCH]"""
        state = find(self.machine.image, _named(words[0]))
        leader = NodeId(int(options.get("by", state.leader)))
        epochs = {n: node.broker_epoch for n, node in self.machine.image.nodes.items()}
        if "seen" in options:
            node_id, seen = options["seen"].split(":")
            epochs[NodeId(int(node_id))] = BrokerEpoch(int(seen))
        proposal = IsrProposal(
            state.id,
            state.leader_epoch,
            PartitionEpoch(state.partition_epoch - int(options.get("late", 0))),
            tuple(IsrMember(n, epochs.get(n, NO_BROKER_EPOCH)) for n in _nodes(words[1])),
        )
        node = self.machine.image.nodes[leader]
        return self.machine.decide_alter_isr(leader, node.broker_epoch, [proposal])

    def elect(self, words: list[str], options: dict[str, str]) -> Decision[Any]:
        named = [_named(word) for word in words if word != "unclean"]
        return self.machine.decide_elect_leaders(named or None, unclean="unclean" in words)

    def balance(self, words: list[str], options: dict[str, str]) -> Decision[Any]:
        return self.machine.decide_balance_leaders(int(words[0]))

    def move(self, words: list[str], options: dict[str, str]) -> Decision[Any]:
        return self.machine.decide_reassign([Move(_named(words[0]), _nodes(words[1]))])

    def cancel(self, words: list[str], options: dict[str, str]) -> Decision[Any]:
        return self.machine.decide_reassign([Move(_named(words[0]), ())])

    # -- printing ---------------------------------------------------------------------------------

    def record(self, record: MetadataRecord) -> str:
        match record:
            case PartitionCreated(state) | PartitionChanged(state):
                return self.describe(state)
            case NodeRegistered():
                how = "clean" if record.clean_shutdown else "unclean"
                return f"node {record.node_id} registered, epoch {record.broker_epoch}, {how}"
            case ShardOwned(kind, shard, owner, epoch):
                return f"{kind.value} shard {shard}: owner {owner} epoch {epoch}"
            case _:
                fields = (getattr(record, name) for name in record.__dataclass_fields__)
                shown = (value for value in fields if not isinstance(value, bytes))
                return " ".join((type(record).__name__, *map(str, shown)))

    def describe(self, state: PartitionState) -> str:
        name = self.machine.image.topics[state.topic_id].name
        leader = state.leader if state.has_leader else "none"
        text = (
            f"{name}-{state.partition}: leader {leader} "
            f"epoch {state.leader_epoch}.{state.partition_epoch} isr {_listed(state.isr)}"
        )
        if set(state.isr) != set(state.replicas):
            text += f" of {_listed(state.replicas)}"
        if state.reassignment is not None:
            text += f" moving to {_listed(state.reassignment.target)}"
        if state.recovery is not Recovery.NONE:
            text += f" {state.recovery.name}"
        return text

    def refusals(self, reply: Any) -> list[str]:
        outcomes = reply if isinstance(reply, tuple) else (reply,)
        errors = [getattr(outcome, "error", None) for outcome in outcomes]
        lines = [f"{type(e).__name__}: {e.message}" for e in errors if e is not None]
        if getattr(reply, "may_shut_down", False):
            lines.append("it may go")
        elif getattr(reply, "leaders_left", 0) or getattr(reply, "shards_left", 0):
            lines.append(f"left: {reply.leaders_left} leaders, {reply.shards_left} shards")
        return lines

    def node(self, word: str, options: dict[str, str]) -> tuple[NodeId, BrokerEpoch]:
        node_id = NodeId(int(word))
        if "epoch" in options:
            return node_id, BrokerEpoch(int(options["epoch"]))
        node = self.machine.image.nodes.get(node_id)
        return node_id, BrokerEpoch(-1) if node is None else node.broker_epoch

    def fresh_id(self) -> bytes:
        self.made += 1
        return self.made.to_bytes(16, "big")


def _named(word: str) -> TopicPartition:
    topic, partition = word.rsplit("-", 1)
    return TopicPartition(topic, int(partition))


def _nodes(word: str) -> tuple[NodeId, ...]:
    return tuple(NodeId(int(part)) for part in word.split(","))


def _listed(nodes: tuple[NodeId, ...]) -> str:
    return ",".join(map(str, nodes))
