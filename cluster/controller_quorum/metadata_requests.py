"""What the metadata machine is asked and what it answers; the service translates the wire's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from suiro.model.ids import NO_BROKER_EPOCH, NO_LEADER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suiro.model.error_base import SuiroError
    from suiro.model.ids import (
        Address,
        BrokerEpoch,
        LeaderEpoch,
        NodeId,
        PartitionEpoch,
        ProducerId,
        TopicId,
        TopicPartition,
    )
    from suiro.model.records import PartitionId, PartitionState, Role

Assignment = tuple[tuple["NodeId", ...], ...]
"""The replicas of each partition, the preferred leader first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A node announces itself.

    `clean_shutdown` holds only together with the epoch that its logs' mark names: a node must have
    removed the mark, durably, before it registers, so that its next crash finds none.
    """

    node_id: NodeId
    incarnation: bytes
    roles: tuple[Role, ...]
    address: Address
    rack: str = ""
    log_directories: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    software: str = ""
    clean_shutdown: bool = False
    former_broker_epoch: BrokerEpoch = NO_BROKER_EPOCH


@dataclass(frozen=True, slots=True)
class Registered:
    """The epoch that all later words of the node carry, and what of its disks is missing."""

    broker_epoch: BrokerEpoch
    lost_directories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What a node says of itself, again and again.

    `ready`: its logs are open and its image has reached its registration, so it may be unfenced.
    """

    node_id: NodeId
    broker_epoch: BrokerEpoch
    ready: bool = True
    want_shutdown: bool = False


@dataclass(frozen=True, slots=True)
class Standing:
    """How a node stands: the answer to a heartbeat."""

    fenced: bool
    leaders_left: int = 0
    shards_left: int = 0
    may_shut_down: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic to create. Its id is chosen at random by whoever asks: the machine has no dice.

    Zero partitions or replicas stand for the cluster's default; an assignment by hand stands
    instead of both.
    """

    name: str
    topic_id: TopicId
    partitions: int = 0
    replication_factor: int = 0
    assignment: Assignment = ()
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicOutcome:
    """What became of one topic of a request; the others do not depend on it."""

    name: str
    topic_id: TopicId | None = None
    partitions: int = 0
    replication_factor: int = 0
    error: SuiroError | None = None


@dataclass(frozen=True, slots=True)
class IsrMember:
    """A replica, and the incarnation of it that the leader has seen catch up."""

    node_id: NodeId
    broker_epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class IsrProposal:
    """What a leader wants the ISR to be, if nothing has changed since it looked."""

    partition: PartitionId
    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    isr: tuple[IsrMember, ...]


@dataclass(frozen=True, slots=True)
class IsrOutcome:
    """The partition as it is now, or why the proposal was refused."""

    partition: PartitionId
    state: PartitionState | None = None
    error: SuiroError | None = None


@dataclass(frozen=True, slots=True)
class PartitionOutcome:
    """Who leads now, or why what was asked for one partition was refused."""

    partition: TopicPartition
    leader: NodeId = NO_LEADER
    error: SuiroError | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """New replicas for a partition; none cancels the reassignment that is under way."""

    partition: TopicPartition
    replicas: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class ProducerIds:
    """The ids [start, end), for one node alone."""

    start: ProducerId
    end: ProducerId


@dataclass(frozen=True, slots=True)
class UncleanElection:
    """An effect: somebody who may lack records leads. To be logged and counted, loudly."""

    partition: TopicPartition
    leader: NodeId
    former_isr: tuple[NodeId, ...]
