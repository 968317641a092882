from suiro._proto import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FindGroupCoordinatorRequest(_message.Message):
    __slots__ = ("group",)
    GROUP_FIELD_NUMBER: _ClassVar[int]
    group: str
    def __init__(self, group: _Optional[str] = ...) -> None: ...

class FindGroupCoordinatorReply(_message.Message):
    __slots__ = ("coordinator", "shard", "owner_epoch", "coordinators")
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    SHARD_FIELD_NUMBER: _ClassVar[int]
    OWNER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    COORDINATORS_FIELD_NUMBER: _ClassVar[int]
    coordinator: _common_pb2.NodeAddress
    shard: int
    owner_epoch: int
    coordinators: _containers.RepeatedCompositeFieldContainer[_common_pb2.NodeAddress]
    def __init__(self, coordinator: _Optional[_Union[_common_pb2.NodeAddress, _Mapping]] = ..., shard: _Optional[int] = ..., owner_epoch: _Optional[int] = ..., coordinators: _Optional[_Iterable[_Union[_common_pb2.NodeAddress, _Mapping]]] = ...) -> None: ...

class MemberMessage(_message.Message):
    __slots__ = ("hello", "group", "member_id", "member_epoch", "instance_id", "topics", "pattern", "assignors", "session_timeout_ms", "rebalance_timeout_ms", "owned", "leaving", "leave_reason", "rack", "computed", "subscription_version", "number")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    MEMBER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    ASSIGNORS_FIELD_NUMBER: _ClassVar[int]
    SESSION_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    REBALANCE_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    OWNED_FIELD_NUMBER: _ClassVar[int]
    LEAVING_FIELD_NUMBER: _ClassVar[int]
    LEAVE_REASON_FIELD_NUMBER: _ClassVar[int]
    RACK_FIELD_NUMBER: _ClassVar[int]
    COMPUTED_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTION_VERSION_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    hello: _common_pb2.Hello
    group: str
    member_id: str
    member_epoch: int
    instance_id: str
    topics: _containers.RepeatedScalarFieldContainer[str]
    pattern: str
    assignors: _containers.RepeatedScalarFieldContainer[str]
    session_timeout_ms: int
    rebalance_timeout_ms: int
    owned: _containers.RepeatedCompositeFieldContainer[_common_pb2.TopicPartition]
    leaving: bool
    leave_reason: str
    rack: str
    computed: ComputedAssignment
    subscription_version: int
    number: int
    def __init__(self, hello: _Optional[_Union[_common_pb2.Hello, _Mapping]] = ..., group: _Optional[str] = ..., member_id: _Optional[str] = ..., member_epoch: _Optional[int] = ..., instance_id: _Optional[str] = ..., topics: _Optional[_Iterable[str]] = ..., pattern: _Optional[str] = ..., assignors: _Optional[_Iterable[str]] = ..., session_timeout_ms: _Optional[int] = ..., rebalance_timeout_ms: _Optional[int] = ..., owned: _Optional[_Iterable[_Union[_common_pb2.TopicPartition, _Mapping]]] = ..., leaving: _Optional[bool] = ..., leave_reason: _Optional[str] = ..., rack: _Optional[str] = ..., computed: _Optional[_Union[ComputedAssignment, _Mapping]] = ..., subscription_version: _Optional[int] = ..., number: _Optional[int] = ...) -> None: ...

class MemberNotice(_message.Message):
    __slots__ = ("hello", "error", "member_id", "member_epoch", "assigned", "has_assignment", "reason", "compute", "answers", "joined_epoch")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    MEMBER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    ASSIGNED_FIELD_NUMBER: _ClassVar[int]
    HAS_ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    COMPUTE_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    JOINED_EPOCH_FIELD_NUMBER: _ClassVar[int]
    hello: _common_pb2.HelloReply
    error: _common_pb2.Error
    member_id: str
    member_epoch: int
    assigned: _containers.RepeatedCompositeFieldContainer[_common_pb2.TopicPartition]
    has_assignment: bool
    reason: str
    compute: ComputeAssignment
    answers: int
    joined_epoch: int
    def __init__(self, hello: _Optional[_Union[_common_pb2.HelloReply, _Mapping]] = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ..., member_id: _Optional[str] = ..., member_epoch: _Optional[int] = ..., assigned: _Optional[_Iterable[_Union[_common_pb2.TopicPartition, _Mapping]]] = ..., has_assignment: _Optional[bool] = ..., reason: _Optional[str] = ..., compute: _Optional[_Union[ComputeAssignment, _Mapping]] = ..., answers: _Optional[int] = ..., joined_epoch: _Optional[int] = ...) -> None: ...

class ComputeAssignment(_message.Message):
    __slots__ = ("group_epoch", "assignor", "members", "partitions")
    GROUP_EPOCH_FIELD_NUMBER: _ClassVar[int]
    ASSIGNOR_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    group_epoch: int
    assignor: str
    members: _containers.RepeatedCompositeFieldContainer[MemberView]
    partitions: _containers.RepeatedCompositeFieldContainer[_common_pb2.TopicPartition]
    def __init__(self, group_epoch: _Optional[int] = ..., assignor: _Optional[str] = ..., members: _Optional[_Iterable[_Union[MemberView, _Mapping]]] = ..., partitions: _Optional[_Iterable[_Union[_common_pb2.TopicPartition, _Mapping]]] = ...) -> None: ...

class MemberView(_message.Message):
    __slots__ = ("member_id", "topics", "owned", "rack")
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    OWNED_FIELD_NUMBER: _ClassVar[int]
    RACK_FIELD_NUMBER: _ClassVar[int]
    member_id: str
    topics: _containers.RepeatedScalarFieldContainer[str]
    owned: _containers.RepeatedCompositeFieldContainer[_common_pb2.TopicPartition]
    rack: str
    def __init__(self, member_id: _Optional[str] = ..., topics: _Optional[_Iterable[str]] = ..., owned: _Optional[_Iterable[_Union[_common_pb2.TopicPartition, _Mapping]]] = ..., rack: _Optional[str] = ...) -> None: ...

class ComputedAssignment(_message.Message):
    __slots__ = ("group_epoch", "members")
    GROUP_EPOCH_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    group_epoch: int
    members: _containers.RepeatedCompositeFieldContainer[MemberView]
    def __init__(self, group_epoch: _Optional[int] = ..., members: _Optional[_Iterable[_Union[MemberView, _Mapping]]] = ...) -> None: ...

class CommitOffsetsRequest(_message.Message):
    __slots__ = ("group", "member_id", "member_epoch", "offsets", "transactional_id", "producer_id", "producer_epoch")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    MEMBER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    TRANSACTIONAL_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    group: str
    member_id: str
    member_epoch: int
    offsets: _containers.RepeatedCompositeFieldContainer[OffsetCommit]
    transactional_id: str
    producer_id: int
    producer_epoch: int
    def __init__(self, group: _Optional[str] = ..., member_id: _Optional[str] = ..., member_epoch: _Optional[int] = ..., offsets: _Optional[_Iterable[_Union[OffsetCommit, _Mapping]]] = ..., transactional_id: _Optional[str] = ..., producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ...) -> None: ...

class OffsetCommit(_message.Message):
    __slots__ = ("partition", "offset", "leader_epoch", "metadata", "topic_id", "reset")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    RESET_FIELD_NUMBER: _ClassVar[int]
    partition: _common_pb2.TopicPartition
    offset: int
    leader_epoch: int
    metadata: str
    topic_id: bytes
    reset: bool
    def __init__(self, partition: _Optional[_Union[_common_pb2.TopicPartition, _Mapping]] = ..., offset: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., metadata: _Optional[str] = ..., topic_id: _Optional[bytes] = ..., reset: _Optional[bool] = ...) -> None: ...

class CommitOffsetsReply(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[OffsetCommitResult]
    def __init__(self, results: _Optional[_Iterable[_Union[OffsetCommitResult, _Mapping]]] = ...) -> None: ...

class OffsetCommitResult(_message.Message):
    __slots__ = ("partition", "error")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    partition: _common_pb2.TopicPartition
    error: _common_pb2.Error
    def __init__(self, partition: _Optional[_Union[_common_pb2.TopicPartition, _Mapping]] = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ...) -> None: ...

class FetchOffsetsRequest(_message.Message):
    __slots__ = ("group", "partitions", "require_stable")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    REQUIRE_STABLE_FIELD_NUMBER: _ClassVar[int]
    group: str
    partitions: _containers.RepeatedCompositeFieldContainer[_common_pb2.TopicPartition]
    require_stable: bool
    def __init__(self, group: _Optional[str] = ..., partitions: _Optional[_Iterable[_Union[_common_pb2.TopicPartition, _Mapping]]] = ..., require_stable: _Optional[bool] = ...) -> None: ...

class FetchOffsetsReply(_message.Message):
    __slots__ = ("offsets",)
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    offsets: _containers.RepeatedCompositeFieldContainer[CommittedOffset]
    def __init__(self, offsets: _Optional[_Iterable[_Union[CommittedOffset, _Mapping]]] = ...) -> None: ...

class CommittedOffset(_message.Message):
    __slots__ = ("partition", "offset", "leader_epoch", "metadata", "committed_at_ms", "error", "topic_id")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    partition: _common_pb2.TopicPartition
    offset: int
    leader_epoch: int
    metadata: str
    committed_at_ms: int
    error: _common_pb2.Error
    topic_id: bytes
    def __init__(self, partition: _Optional[_Union[_common_pb2.TopicPartition, _Mapping]] = ..., offset: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., metadata: _Optional[str] = ..., committed_at_ms: _Optional[int] = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ..., topic_id: _Optional[bytes] = ...) -> None: ...

class SettleOffsetsRequest(_message.Message):
    __slots__ = ("group", "producer_id", "producer_epoch", "commit", "txn_owner_epoch", "txn_shard")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    TXN_OWNER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    TXN_SHARD_FIELD_NUMBER: _ClassVar[int]
    group: str
    producer_id: int
    producer_epoch: int
    commit: bool
    txn_owner_epoch: int
    txn_shard: int
    def __init__(self, group: _Optional[str] = ..., producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ..., commit: _Optional[bool] = ..., txn_owner_epoch: _Optional[int] = ..., txn_shard: _Optional[int] = ...) -> None: ...

class SettleOffsetsReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListGroupsRequest(_message.Message):
    __slots__ = ("states",)
    STATES_FIELD_NUMBER: _ClassVar[int]
    states: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, states: _Optional[_Iterable[str]] = ...) -> None: ...

class ListGroupsReply(_message.Message):
    __slots__ = ("groups",)
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedCompositeFieldContainer[GroupSummary]
    def __init__(self, groups: _Optional[_Iterable[_Union[GroupSummary, _Mapping]]] = ...) -> None: ...

class GroupSummary(_message.Message):
    __slots__ = ("group", "state", "members")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    group: str
    state: str
    members: int
    def __init__(self, group: _Optional[str] = ..., state: _Optional[str] = ..., members: _Optional[int] = ...) -> None: ...

class DescribeGroupRequest(_message.Message):
    __slots__ = ("group", "history")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    group: str
    history: bool
    def __init__(self, group: _Optional[str] = ..., history: _Optional[bool] = ...) -> None: ...

class DescribeGroupReply(_message.Message):
    __slots__ = ("summary", "assignor", "group_epoch", "members", "history", "coordinator")
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    ASSIGNOR_FIELD_NUMBER: _ClassVar[int]
    GROUP_EPOCH_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    summary: GroupSummary
    assignor: str
    group_epoch: int
    members: _containers.RepeatedCompositeFieldContainer[MemberState]
    history: _containers.RepeatedCompositeFieldContainer[Rebalance]
    coordinator: _common_pb2.NodeAddress
    def __init__(self, summary: _Optional[_Union[GroupSummary, _Mapping]] = ..., assignor: _Optional[str] = ..., group_epoch: _Optional[int] = ..., members: _Optional[_Iterable[_Union[MemberState, _Mapping]]] = ..., history: _Optional[_Iterable[_Union[Rebalance, _Mapping]]] = ..., coordinator: _Optional[_Union[_common_pb2.NodeAddress, _Mapping]] = ...) -> None: ...

class MemberState(_message.Message):
    __slots__ = ("member_id", "instance_id", "client_id", "host", "member_epoch", "assigned", "target", "last_heard_ms", "revoking", "topics", "pattern")
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    MEMBER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    ASSIGNED_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    LAST_HEARD_MS_FIELD_NUMBER: _ClassVar[int]
    REVOKING_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    member_id: str
    instance_id: str
    client_id: str
    host: str
    member_epoch: int
    assigned: _containers.RepeatedCompositeFieldContainer[_common_pb2.TopicPartition]
    target: _containers.RepeatedCompositeFieldContainer[_common_pb2.TopicPartition]
    last_heard_ms: int
    revoking: _containers.RepeatedCompositeFieldContainer[_common_pb2.TopicPartition]
    topics: _containers.RepeatedScalarFieldContainer[str]
    pattern: str
    def __init__(self, member_id: _Optional[str] = ..., instance_id: _Optional[str] = ..., client_id: _Optional[str] = ..., host: _Optional[str] = ..., member_epoch: _Optional[int] = ..., assigned: _Optional[_Iterable[_Union[_common_pb2.TopicPartition, _Mapping]]] = ..., target: _Optional[_Iterable[_Union[_common_pb2.TopicPartition, _Mapping]]] = ..., last_heard_ms: _Optional[int] = ..., revoking: _Optional[_Iterable[_Union[_common_pb2.TopicPartition, _Mapping]]] = ..., topics: _Optional[_Iterable[str]] = ..., pattern: _Optional[str] = ...) -> None: ...

class Rebalance(_message.Message):
    __slots__ = ("at_ms", "group_epoch", "reason", "moved", "moves")
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    GROUP_EPOCH_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MOVED_FIELD_NUMBER: _ClassVar[int]
    MOVES_FIELD_NUMBER: _ClassVar[int]
    at_ms: int
    group_epoch: int
    reason: str
    moved: int
    moves: _containers.RepeatedCompositeFieldContainer[Move]
    def __init__(self, at_ms: _Optional[int] = ..., group_epoch: _Optional[int] = ..., reason: _Optional[str] = ..., moved: _Optional[int] = ..., moves: _Optional[_Iterable[_Union[Move, _Mapping]]] = ...) -> None: ...

class Move(_message.Message):
    __slots__ = ("partition", "source", "destination")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    partition: _common_pb2.TopicPartition
    source: str
    destination: str
    def __init__(self, partition: _Optional[_Union[_common_pb2.TopicPartition, _Mapping]] = ..., source: _Optional[str] = ..., destination: _Optional[str] = ...) -> None: ...

class DeleteGroupRequest(_message.Message):
    __slots__ = ("group", "offsets")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    group: str
    offsets: _containers.RepeatedCompositeFieldContainer[_common_pb2.TopicPartition]
    def __init__(self, group: _Optional[str] = ..., offsets: _Optional[_Iterable[_Union[_common_pb2.TopicPartition, _Mapping]]] = ...) -> None: ...

class DeleteGroupReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
