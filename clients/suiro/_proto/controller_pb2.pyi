from suiro._proto import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RegisterNodeRequest(_message.Message):
    __slots__ = ("hello", "incarnation", "roles", "address", "clean_shutdown", "former_broker_epoch", "log_directories")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    CLEAN_SHUTDOWN_FIELD_NUMBER: _ClassVar[int]
    FORMER_BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    LOG_DIRECTORIES_FIELD_NUMBER: _ClassVar[int]
    hello: _common_pb2.Hello
    incarnation: bytes
    roles: _containers.RepeatedScalarFieldContainer[str]
    address: _common_pb2.NodeAddress
    clean_shutdown: bool
    former_broker_epoch: int
    log_directories: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, hello: _Optional[_Union[_common_pb2.Hello, _Mapping]] = ..., incarnation: _Optional[bytes] = ..., roles: _Optional[_Iterable[str]] = ..., address: _Optional[_Union[_common_pb2.NodeAddress, _Mapping]] = ..., clean_shutdown: _Optional[bool] = ..., former_broker_epoch: _Optional[int] = ..., log_directories: _Optional[_Iterable[str]] = ...) -> None: ...

class RegisterNodeReply(_message.Message):
    __slots__ = ("broker_epoch", "registered_at_index", "lost_directories")
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    REGISTERED_AT_INDEX_FIELD_NUMBER: _ClassVar[int]
    LOST_DIRECTORIES_FIELD_NUMBER: _ClassVar[int]
    broker_epoch: int
    registered_at_index: int
    lost_directories: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, broker_epoch: _Optional[int] = ..., registered_at_index: _Optional[int] = ..., lost_directories: _Optional[_Iterable[str]] = ...) -> None: ...

class NodeHeartbeat(_message.Message):
    __slots__ = ("node_id", "broker_epoch", "image_index", "want_shutdown", "ready")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    IMAGE_INDEX_FIELD_NUMBER: _ClassVar[int]
    WANT_SHUTDOWN_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    node_id: int
    broker_epoch: int
    image_index: int
    want_shutdown: bool
    ready: bool
    def __init__(self, node_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ..., image_index: _Optional[int] = ..., want_shutdown: _Optional[bool] = ..., ready: _Optional[bool] = ...) -> None: ...

class NodeNotice(_message.Message):
    __slots__ = ("fenced", "may_shut_down", "session_timeout_ms", "committed_index", "controllers")
    FENCED_FIELD_NUMBER: _ClassVar[int]
    MAY_SHUT_DOWN_FIELD_NUMBER: _ClassVar[int]
    SESSION_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_INDEX_FIELD_NUMBER: _ClassVar[int]
    CONTROLLERS_FIELD_NUMBER: _ClassVar[int]
    fenced: bool
    may_shut_down: bool
    session_timeout_ms: int
    committed_index: int
    controllers: _containers.RepeatedCompositeFieldContainer[_common_pb2.NodeAddress]
    def __init__(self, fenced: _Optional[bool] = ..., may_shut_down: _Optional[bool] = ..., session_timeout_ms: _Optional[int] = ..., committed_index: _Optional[int] = ..., controllers: _Optional[_Iterable[_Union[_common_pb2.NodeAddress, _Mapping]]] = ...) -> None: ...

class FollowMetadataRequest(_message.Message):
    __slots__ = ("hello", "from_index", "broker_epoch")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    FROM_INDEX_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    hello: _common_pb2.Hello
    from_index: int
    broker_epoch: int
    def __init__(self, hello: _Optional[_Union[_common_pb2.Hello, _Mapping]] = ..., from_index: _Optional[int] = ..., broker_epoch: _Optional[int] = ...) -> None: ...

class MetadataFeed(_message.Message):
    __slots__ = ("snapshot", "records", "index", "term")
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    snapshot: bool
    records: _containers.RepeatedScalarFieldContainer[bytes]
    index: int
    term: int
    def __init__(self, snapshot: _Optional[bool] = ..., records: _Optional[_Iterable[bytes]] = ..., index: _Optional[int] = ..., term: _Optional[int] = ...) -> None: ...

class AlterPartitionsRequest(_message.Message):
    __slots__ = ("node_id", "broker_epoch", "changes")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    node_id: int
    broker_epoch: int
    changes: _containers.RepeatedCompositeFieldContainer[PartitionChange]
    def __init__(self, node_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ..., changes: _Optional[_Iterable[_Union[PartitionChange, _Mapping]]] = ...) -> None: ...

class PartitionChange(_message.Message):
    __slots__ = ("topic_id", "partition", "leader_epoch", "partition_epoch", "isr")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    PARTITION_EPOCH_FIELD_NUMBER: _ClassVar[int]
    ISR_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: _containers.RepeatedCompositeFieldContainer[IsrMember]
    def __init__(self, topic_id: _Optional[bytes] = ..., partition: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., partition_epoch: _Optional[int] = ..., isr: _Optional[_Iterable[_Union[IsrMember, _Mapping]]] = ...) -> None: ...

class IsrMember(_message.Message):
    __slots__ = ("node_id", "broker_epoch")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    node_id: int
    broker_epoch: int
    def __init__(self, node_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ...) -> None: ...

class AlterPartitionsReply(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[PartitionChangeResult]
    def __init__(self, results: _Optional[_Iterable[_Union[PartitionChangeResult, _Mapping]]] = ...) -> None: ...

class PartitionChangeResult(_message.Message):
    __slots__ = ("error", "partition_epoch", "isr")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    PARTITION_EPOCH_FIELD_NUMBER: _ClassVar[int]
    ISR_FIELD_NUMBER: _ClassVar[int]
    error: _common_pb2.Error
    partition_epoch: int
    isr: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ..., partition_epoch: _Optional[int] = ..., isr: _Optional[_Iterable[int]] = ...) -> None: ...

class ReportReplicasRequest(_message.Message):
    __slots__ = ("node_id", "broker_epoch", "offline", "online")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    OFFLINE_FIELD_NUMBER: _ClassVar[int]
    ONLINE_FIELD_NUMBER: _ClassVar[int]
    node_id: int
    broker_epoch: int
    offline: _containers.RepeatedCompositeFieldContainer[ReplicaId]
    online: _containers.RepeatedCompositeFieldContainer[ReplicaId]
    def __init__(self, node_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ..., offline: _Optional[_Iterable[_Union[ReplicaId, _Mapping]]] = ..., online: _Optional[_Iterable[_Union[ReplicaId, _Mapping]]] = ...) -> None: ...

class ReplicaId(_message.Message):
    __slots__ = ("topic_id", "partition")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    partition: int
    def __init__(self, topic_id: _Optional[bytes] = ..., partition: _Optional[int] = ...) -> None: ...

class ReportReplicasReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AllocateProducerIdsRequest(_message.Message):
    __slots__ = ("node_id", "broker_epoch")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    node_id: int
    broker_epoch: int
    def __init__(self, node_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ...) -> None: ...

class AllocateProducerIdsReply(_message.Message):
    __slots__ = ("first", "count")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    first: int
    count: int
    def __init__(self, first: _Optional[int] = ..., count: _Optional[int] = ...) -> None: ...

class CallBatch(_message.Message):
    __slots__ = ("calls",)
    CALLS_FIELD_NUMBER: _ClassVar[int]
    calls: _containers.RepeatedCompositeFieldContainer[Call]
    def __init__(self, calls: _Optional[_Iterable[_Union[Call, _Mapping]]] = ...) -> None: ...

class Call(_message.Message):
    __slots__ = ("id", "method", "request", "traceparent")
    ID_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    id: int
    method: str
    request: bytes
    traceparent: str
    def __init__(self, id: _Optional[int] = ..., method: _Optional[str] = ..., request: _Optional[bytes] = ..., traceparent: _Optional[str] = ...) -> None: ...

class AnswerBatch(_message.Message):
    __slots__ = ("answers",)
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    answers: _containers.RepeatedCompositeFieldContainer[Answer]
    def __init__(self, answers: _Optional[_Iterable[_Union[Answer, _Mapping]]] = ...) -> None: ...

class Answer(_message.Message):
    __slots__ = ("id", "error", "reply")
    ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    REPLY_FIELD_NUMBER: _ClassVar[int]
    id: int
    error: _common_pb2.Error
    reply: bytes
    def __init__(self, id: _Optional[int] = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ..., reply: _Optional[bytes] = ...) -> None: ...
