from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GroupRecordKey(_message.Message):
    __slots__ = ("kind", "group", "member_id", "topic", "partition", "number")
    KIND_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    kind: int
    group: str
    member_id: str
    topic: str
    partition: int
    number: int
    def __init__(self, kind: _Optional[int] = ..., group: _Optional[str] = ..., member_id: _Optional[str] = ..., topic: _Optional[str] = ..., partition: _Optional[int] = ..., number: _Optional[int] = ...) -> None: ...

class GroupRecordValue(_message.Message):
    __slots__ = ("group", "member", "target", "offset", "producer", "rebalance")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_FIELD_NUMBER: _ClassVar[int]
    REBALANCE_FIELD_NUMBER: _ClassVar[int]
    group: GroupStateValue
    member: MemberStateValue
    target: TargetStateValue
    offset: OffsetStateValue
    producer: ProducerStateValue
    rebalance: RebalanceValue
    def __init__(self, group: _Optional[_Union[GroupStateValue, _Mapping]] = ..., member: _Optional[_Union[MemberStateValue, _Mapping]] = ..., target: _Optional[_Union[TargetStateValue, _Mapping]] = ..., offset: _Optional[_Union[OffsetStateValue, _Mapping]] = ..., producer: _Optional[_Union[ProducerStateValue, _Mapping]] = ..., rebalance: _Optional[_Union[RebalanceValue, _Mapping]] = ...) -> None: ...

class GroupStateValue(_message.Message):
    __slots__ = ("epoch", "target_epoch", "given_epoch", "assignor", "reasons", "asked", "empty_since_ms")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    TARGET_EPOCH_FIELD_NUMBER: _ClassVar[int]
    GIVEN_EPOCH_FIELD_NUMBER: _ClassVar[int]
    ASSIGNOR_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    ASKED_FIELD_NUMBER: _ClassVar[int]
    EMPTY_SINCE_MS_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    target_epoch: int
    given_epoch: int
    assignor: str
    reasons: _containers.RepeatedScalarFieldContainer[str]
    asked: str
    empty_since_ms: int
    def __init__(self, epoch: _Optional[int] = ..., target_epoch: _Optional[int] = ..., given_epoch: _Optional[int] = ..., assignor: _Optional[str] = ..., reasons: _Optional[_Iterable[str]] = ..., asked: _Optional[str] = ..., empty_since_ms: _Optional[int] = ...) -> None: ...

class MemberStateValue(_message.Message):
    __slots__ = ("member_epoch", "instance_id", "client_id", "host", "rack", "topics", "pattern", "assignors", "session_timeout_ms", "rebalance_timeout_ms", "subscription_version", "owned", "joined_epoch")
    MEMBER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    RACK_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    ASSIGNORS_FIELD_NUMBER: _ClassVar[int]
    SESSION_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    REBALANCE_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTION_VERSION_FIELD_NUMBER: _ClassVar[int]
    OWNED_FIELD_NUMBER: _ClassVar[int]
    JOINED_EPOCH_FIELD_NUMBER: _ClassVar[int]
    member_epoch: int
    instance_id: str
    client_id: str
    host: str
    rack: str
    topics: _containers.RepeatedScalarFieldContainer[str]
    pattern: str
    assignors: _containers.RepeatedScalarFieldContainer[str]
    session_timeout_ms: int
    rebalance_timeout_ms: int
    subscription_version: int
    owned: _containers.RepeatedCompositeFieldContainer[OwnedValue]
    joined_epoch: int
    def __init__(self, member_epoch: _Optional[int] = ..., instance_id: _Optional[str] = ..., client_id: _Optional[str] = ..., host: _Optional[str] = ..., rack: _Optional[str] = ..., topics: _Optional[_Iterable[str]] = ..., pattern: _Optional[str] = ..., assignors: _Optional[_Iterable[str]] = ..., session_timeout_ms: _Optional[int] = ..., rebalance_timeout_ms: _Optional[int] = ..., subscription_version: _Optional[int] = ..., owned: _Optional[_Iterable[_Union[OwnedValue, _Mapping]]] = ..., joined_epoch: _Optional[int] = ...) -> None: ...

class OwnedValue(_message.Message):
    __slots__ = ("topic", "partitions", "granted_epochs", "revoked_epochs")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    GRANTED_EPOCHS_FIELD_NUMBER: _ClassVar[int]
    REVOKED_EPOCHS_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partitions: _containers.RepeatedScalarFieldContainer[int]
    granted_epochs: _containers.RepeatedScalarFieldContainer[int]
    revoked_epochs: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, topic: _Optional[str] = ..., partitions: _Optional[_Iterable[int]] = ..., granted_epochs: _Optional[_Iterable[int]] = ..., revoked_epochs: _Optional[_Iterable[int]] = ...) -> None: ...

class TargetStateValue(_message.Message):
    __slots__ = ("partitions",)
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    partitions: _containers.RepeatedCompositeFieldContainer[PartitionsValue]
    def __init__(self, partitions: _Optional[_Iterable[_Union[PartitionsValue, _Mapping]]] = ...) -> None: ...

class PartitionsValue(_message.Message):
    __slots__ = ("topic", "partitions")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partitions: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, topic: _Optional[str] = ..., partitions: _Optional[_Iterable[int]] = ...) -> None: ...

class OffsetStateValue(_message.Message):
    __slots__ = ("offset", "leader_epoch", "metadata", "topic_id", "committed_at_ms")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    offset: int
    leader_epoch: int
    metadata: str
    topic_id: bytes
    committed_at_ms: int
    def __init__(self, offset: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., metadata: _Optional[str] = ..., topic_id: _Optional[bytes] = ..., committed_at_ms: _Optional[int] = ...) -> None: ...

class ProducerStateValue(_message.Message):
    __slots__ = ("producer_epoch", "outcome", "at_ms", "offsets")
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    producer_epoch: int
    outcome: int
    at_ms: int
    offsets: _containers.RepeatedCompositeFieldContainer[PendingOffsetValue]
    def __init__(self, producer_epoch: _Optional[int] = ..., outcome: _Optional[int] = ..., at_ms: _Optional[int] = ..., offsets: _Optional[_Iterable[_Union[PendingOffsetValue, _Mapping]]] = ...) -> None: ...

class PendingOffsetValue(_message.Message):
    __slots__ = ("topic", "partition", "offset")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    offset: OffsetStateValue
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., offset: _Optional[_Union[OffsetStateValue, _Mapping]] = ...) -> None: ...

class RebalanceValue(_message.Message):
    __slots__ = ("at_ms", "epoch", "reason", "moved", "moves")
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MOVED_FIELD_NUMBER: _ClassVar[int]
    MOVES_FIELD_NUMBER: _ClassVar[int]
    at_ms: int
    epoch: int
    reason: str
    moved: int
    moves: _containers.RepeatedCompositeFieldContainer[MoveValue]
    def __init__(self, at_ms: _Optional[int] = ..., epoch: _Optional[int] = ..., reason: _Optional[str] = ..., moved: _Optional[int] = ..., moves: _Optional[_Iterable[_Union[MoveValue, _Mapping]]] = ...) -> None: ...

class MoveValue(_message.Message):
    __slots__ = ("topic", "partition", "source", "destination")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    source: str
    destination: str
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., source: _Optional[str] = ..., destination: _Optional[str] = ...) -> None: ...
