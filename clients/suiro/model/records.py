"""The records of the cluster metadata: what the quorum agrees on, one class per kind of change.

They are facts, in the past tense: `image` applies them, `codec` stores them, the machine of the
controllers decides them. A record holds the new state of what it names, never a difference, so
applying one needs nothing but the image; and it can be told from the record alone what it touches.

A *node* is a process that registered: a broker, a coordinator, or all of it in one. Its broker
epoch is new with every incarnation.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import NamedTuple

from suiro.model.ids import (
    NO_LEADER,
    Address,
    BrokerEpoch,
    LeaderEpoch,
    NodeId,
    OwnerEpoch,
    PartitionEpoch,
    ProducerId,
    TopicId,
)

FIRST_LEADER_EPOCH = LeaderEpoch(0)
FIRST_PARTITION_EPOCH = PartitionEpoch(0)


class Role(StrEnum):
    """What a node serves."""

    BROKER = "broker"
    GROUP = "group"
    TXN = "txn"


class ShardKind(StrEnum):
    """Which coordinators a shard belongs to; the values are those of `Role`."""

    GROUP = "group"
    TXN = "txn"


class ConfigResource(IntEnum):
    """What a setting is set on; the numbers are those of admin.proto."""

    TOPIC = 0
    BROKER = 1
    CLUSTER = 2


class Recovery(IntEnum):
    """A mark on a partition whose leader may lack records that were acknowledged.

    It stays until the leader has had a change of its ISR accepted.
    """

    NONE = 0
    LAST_STANDING = 1
    """The last in-sync replica came back from an unclean shutdown: its unsynced tail may be lost.
    """
    UNCLEAN = 2
    """The leader was elected from outside the ISR, because the topic allows it."""


class PartitionId(NamedTuple):
    """One partition by topic id. A named tuple, not a dataclass: it is the key of the large sets of
    the image, and a tuple's hash is computed in C.
    """

    topic_id: TopicId
    partition: int

    def __str__(self) -> str:
        return f"{self.topic_id.hex()}-{self.partition}"


# -- nodes ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NodeRegistered:
    """A new incarnation of a node. It is fenced, and not shutting down, until a record says so."""

    node_id: NodeId
    incarnation: bytes
    broker_epoch: BrokerEpoch
    roles: tuple[Role, ...]
    address: Address
    rack: str = ""
    log_directories: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    software: str = ""
    clean_shutdown: bool = True
    """Whether its last life ended with its logs on disk; true for a node that had none."""
    lost_directories: tuple[str, ...] = ()
    """Those that it had and has no more, until it has said which of its replicas that took."""


@dataclass(frozen=True, slots=True)
class NodeFenced:
    """It may not serve: it leads nothing and counts in no ISR."""

    node_id: NodeId
    broker_epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class NodeUnfenced:
    """It is alive and ready."""

    node_id: NodeId
    broker_epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class NodeShuttingDown:
    """It has asked to leave, so it is given nothing new; only a new registration ends this."""

    node_id: NodeId
    broker_epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class NodeUnregistered:
    """It is gone for good; no replica was on it."""

    node_id: NodeId
    broker_epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class NodeEpochReached:
    """Snapshots only: the highest broker epoch ever given out, as its node may be gone."""

    broker_epoch: BrokerEpoch


# -- topics and partitions ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TopicCreated:
    """A topic; its partitions follow, from 0 up."""

    topic_id: TopicId
    name: str


@dataclass(frozen=True, slots=True)
class TopicDeleted:
    """A topic is gone with its partitions and settings. The image remembers it, as only this
    record, never the mere absence of a topic, allows a broker to delete data (M10).
    """

    topic_id: TopicId
    name: str


@dataclass(frozen=True, slots=True)
class Reassignment:
    """Where the replicas of a partition are going. Nothing of the old order is lost before it is
    complete, so one that is cancelled leaves the partition as it was.
    """

    target: tuple[NodeId, ...]
    """The replicas afterwards, in order."""
    adding: tuple[NodeId, ...]
    """Those of the target that were no replicas before."""


@dataclass(frozen=True, slots=True)
class PartitionState:
    """All that the cluster agrees on about one partition.

    Always: isr within replicas, without repetition and never empty; the leader in the isr, or
    nobody, and not offline; the leader epoch rises with every change of leader, the partition epoch
    with any change.
    """

    topic_id: TopicId
    partition: int
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    leader: NodeId
    leader_epoch: LeaderEpoch = FIRST_LEADER_EPOCH
    partition_epoch: PartitionEpoch = FIRST_PARTITION_EPOCH
    recovery: Recovery = Recovery.NONE
    reassignment: Reassignment | None = None
    """Under way; the replicas that it adds stand behind the old ones in `replicas`."""
    offline: tuple[NodeId, ...] = ()
    """The replicas whose log cannot be used, in the order of `replicas`: its directory failed or is
    lost, or it is damaged. None of them leads or is let into the ISR; the last one in it stays.
    """

    @property
    def id(self) -> PartitionId:
        return PartitionId(self.topic_id, self.partition)

    @property
    def preferred(self) -> NodeId:
        """Who should lead, so that leaders are spread as they were placed."""
        return self.replicas[0]

    @property
    def has_leader(self) -> bool:
        return self.leader != NO_LEADER


@dataclass(frozen=True, slots=True)
class PartitionCreated:
    """A new partition, or one of a snapshot."""

    state: PartitionState


@dataclass(frozen=True, slots=True)
class PartitionChanged:
    """The whole new state; its partition epoch is one more than the one before."""

    state: PartitionState


# -- settings -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ConfigSet:
    """One setting of a topic, a broker (by id) or the cluster (no name); None is its default."""

    resource: ConfigResource
    name: str
    key: str
    value: str | None


@dataclass(frozen=True, slots=True)
class FeatureLevelSet:
    """From here on the cluster uses a feature at this level; every node understands it."""

    name: str
    level: int


@dataclass(frozen=True, slots=True)
class ReassignmentThrottleSet:
    """What each broker may spend on feeding replicas that are being added; 0 is no limit."""

    bytes_per_s: int


# -- producers and coordinators -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProducerIdsAllocated:
    """The producer ids [start, end) belong to the node that asked, and to nobody else ever."""

    node_id: NodeId
    start: ProducerId
    end: ProducerId


@dataclass(frozen=True, slots=True)
class ShardOwned:
    """Who coordinates a shard. The owner epoch rises with every change of owner."""

    kind: ShardKind
    shard: int
    owner: NodeId
    owner_epoch: OwnerEpoch


# -- who may do what ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UserScramSet:
    """What proves a user's password, without being it."""

    user: str
    mechanism: str
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


@dataclass(frozen=True, slots=True)
class UserScramRemoved:
    """The user can no longer log in by that mechanism."""

    user: str
    mechanism: str


@dataclass(frozen=True, slots=True, order=True)
class Acl:
    """Who may (or may not) do what to which resource."""

    resource: str
    name: str
    pattern: str
    principal: str
    host: str
    operation: str
    permission: str


@dataclass(frozen=True, slots=True)
class AclAdded:
    acl: Acl


@dataclass(frozen=True, slots=True)
class AclRemoved:
    acl: Acl


@dataclass(frozen=True, slots=True)
class QuotaSet:
    """A limit on a user, a client id or both; "" stands for everyone without a limit of their own,
    and a value of None removes it.
    """

    user: str | None
    client_id: str | None
    key: str
    value: float | None


MetadataRecord = (
    NodeRegistered
    | NodeFenced
    | NodeUnfenced
    | NodeShuttingDown
    | NodeUnregistered
    | NodeEpochReached
    | TopicCreated
    | TopicDeleted
    | PartitionCreated
    | PartitionChanged
    | ConfigSet
    | FeatureLevelSet
    | ReassignmentThrottleSet
    | ProducerIdsAllocated
    | ShardOwned
    | UserScramSet
    | UserScramRemoved
    | AclAdded
    | AclRemoved
    | QuotaSet
)
