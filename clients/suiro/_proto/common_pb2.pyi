from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ErrorCode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OK: _ClassVar[ErrorCode]
    INTERNAL: _ClassVar[ErrorCode]
    INVALID_REQUEST: _ClassVar[ErrorCode]
    UNSUPPORTED_VERSION: _ClassVar[ErrorCode]
    TIMED_OUT: _ClassVar[ErrorCode]
    UNAVAILABLE: _ClassVar[ErrorCode]
    OVERLOADED: _ClassVar[ErrorCode]
    SHUTTING_DOWN: _ClassVar[ErrorCode]
    UNAUTHENTICATED: _ClassVar[ErrorCode]
    UNAUTHORIZED: _ClassVar[ErrorCode]
    CORRUPT_BATCH: _ClassVar[ErrorCode]
    BATCH_TOO_LARGE: _ClassVar[ErrorCode]
    UNKNOWN_TOPIC_OR_PARTITION: _ClassVar[ErrorCode]
    TOPIC_EXISTS: _ClassVar[ErrorCode]
    INVALID_TOPIC: _ClassVar[ErrorCode]
    INVALID_CONFIG: _ClassVar[ErrorCode]
    NOT_LEADER: _ClassVar[ErrorCode]
    LEADER_NOT_AVAILABLE: _ClassVar[ErrorCode]
    FENCED_LEADER_EPOCH: _ClassVar[ErrorCode]
    UNKNOWN_LEADER_EPOCH: _ClassVar[ErrorCode]
    NOT_ENOUGH_REPLICAS: _ClassVar[ErrorCode]
    OFFSET_OUT_OF_RANGE: _ClassVar[ErrorCode]
    OFFSET_NOT_AVAILABLE: _ClassVar[ErrorCode]
    STORAGE_FAILED: _ClassVar[ErrorCode]
    DISK_FULL: _ClassVar[ErrorCode]
    TOPIC_ID_MISMATCH: _ClassVar[ErrorCode]
    POSITION_TRUNCATED: _ClassVar[ErrorCode]
    INVALID_REPLICATION_FACTOR: _ClassVar[ErrorCode]
    REASSIGNMENT_IN_PROGRESS: _ClassVar[ErrorCode]
    NO_REASSIGNMENT: _ClassVar[ErrorCode]
    OUT_OF_ORDER_SEQUENCE: _ClassVar[ErrorCode]
    UNKNOWN_PRODUCER: _ClassVar[ErrorCode]
    PRODUCER_FENCED: _ClassVar[ErrorCode]
    INVALID_TRANSACTION: _ClassVar[ErrorCode]
    TRANSACTION_TIMED_OUT: _ClassVar[ErrorCode]
    CONCURRENT_TRANSACTION: _ClassVar[ErrorCode]
    TRANSACTION_ABORTED: _ClassVar[ErrorCode]
    ALREADY_COMMITTED: _ClassVar[ErrorCode]
    STALE_BATCH: _ClassVar[ErrorCode]
    NOT_COORDINATOR: _ClassVar[ErrorCode]
    COORDINATOR_LOADING: _ClassVar[ErrorCode]
    STALE_OWNER_EPOCH: _ClassVar[ErrorCode]
    UNKNOWN_MEMBER: _ClassVar[ErrorCode]
    STALE_MEMBER_EPOCH: _ClassVar[ErrorCode]
    FENCED_INSTANCE: _ClassVar[ErrorCode]
    GROUP_NOT_EMPTY: _ClassVar[ErrorCode]
    UNKNOWN_GROUP: _ClassVar[ErrorCode]
    UNSTABLE_OFFSET: _ClassVar[ErrorCode]
    UNSUPPORTED_ASSIGNOR: _ClassVar[ErrorCode]
    NOT_CONTROLLER: _ClassVar[ErrorCode]
    STALE_BROKER_EPOCH: _ClassVar[ErrorCode]
    STALE_PARTITION_EPOCH: _ClassVar[ErrorCode]
    CLUSTER_ID_MISMATCH: _ClassVar[ErrorCode]
    NOT_FORMATTED: _ClassVar[ErrorCode]
    DUPLICATE_NODE: _ClassVar[ErrorCode]
    MEMBERSHIP_CHANGE_PENDING: _ClassVar[ErrorCode]
    UNKNOWN_BROKER: _ClassVar[ErrorCode]
    BROKER_FENCED: _ClassVar[ErrorCode]
    DELIVERY_TIMED_OUT: _ClassVar[ErrorCode]
    BUFFER_FULL: _ClassVar[ErrorCode]
    CLIENT_CLOSED: _ClassVar[ErrorCode]
    NO_POSITION: _ClassVar[ErrorCode]
    INVALID_SETTING: _ClassVar[ErrorCode]

class Isolation(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    READ_COMMITTED: _ClassVar[Isolation]
    READ_UNCOMMITTED: _ClassVar[Isolation]
OK: ErrorCode
INTERNAL: ErrorCode
INVALID_REQUEST: ErrorCode
UNSUPPORTED_VERSION: ErrorCode
TIMED_OUT: ErrorCode
UNAVAILABLE: ErrorCode
OVERLOADED: ErrorCode
SHUTTING_DOWN: ErrorCode
UNAUTHENTICATED: ErrorCode
UNAUTHORIZED: ErrorCode
CORRUPT_BATCH: ErrorCode
BATCH_TOO_LARGE: ErrorCode
UNKNOWN_TOPIC_OR_PARTITION: ErrorCode
TOPIC_EXISTS: ErrorCode
INVALID_TOPIC: ErrorCode
INVALID_CONFIG: ErrorCode
NOT_LEADER: ErrorCode
LEADER_NOT_AVAILABLE: ErrorCode
FENCED_LEADER_EPOCH: ErrorCode
UNKNOWN_LEADER_EPOCH: ErrorCode
NOT_ENOUGH_REPLICAS: ErrorCode
OFFSET_OUT_OF_RANGE: ErrorCode
OFFSET_NOT_AVAILABLE: ErrorCode
STORAGE_FAILED: ErrorCode
DISK_FULL: ErrorCode
TOPIC_ID_MISMATCH: ErrorCode
POSITION_TRUNCATED: ErrorCode
INVALID_REPLICATION_FACTOR: ErrorCode
REASSIGNMENT_IN_PROGRESS: ErrorCode
NO_REASSIGNMENT: ErrorCode
OUT_OF_ORDER_SEQUENCE: ErrorCode
UNKNOWN_PRODUCER: ErrorCode
PRODUCER_FENCED: ErrorCode
INVALID_TRANSACTION: ErrorCode
TRANSACTION_TIMED_OUT: ErrorCode
CONCURRENT_TRANSACTION: ErrorCode
TRANSACTION_ABORTED: ErrorCode
ALREADY_COMMITTED: ErrorCode
STALE_BATCH: ErrorCode
NOT_COORDINATOR: ErrorCode
COORDINATOR_LOADING: ErrorCode
STALE_OWNER_EPOCH: ErrorCode
UNKNOWN_MEMBER: ErrorCode
STALE_MEMBER_EPOCH: ErrorCode
FENCED_INSTANCE: ErrorCode
GROUP_NOT_EMPTY: ErrorCode
UNKNOWN_GROUP: ErrorCode
UNSTABLE_OFFSET: ErrorCode
UNSUPPORTED_ASSIGNOR: ErrorCode
NOT_CONTROLLER: ErrorCode
STALE_BROKER_EPOCH: ErrorCode
STALE_PARTITION_EPOCH: ErrorCode
CLUSTER_ID_MISMATCH: ErrorCode
NOT_FORMATTED: ErrorCode
DUPLICATE_NODE: ErrorCode
MEMBERSHIP_CHANGE_PENDING: ErrorCode
UNKNOWN_BROKER: ErrorCode
BROKER_FENCED: ErrorCode
DELIVERY_TIMED_OUT: ErrorCode
BUFFER_FULL: ErrorCode
CLIENT_CLOSED: ErrorCode
NO_POSITION: ErrorCode
INVALID_SETTING: ErrorCode
READ_COMMITTED: Isolation
READ_UNCOMMITTED: Isolation

class Error(_message.Message):
    __slots__ = ("code", "message", "hints")
    class HintsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    HINTS_FIELD_NUMBER: _ClassVar[int]
    code: ErrorCode
    message: str
    hints: _containers.ScalarMap[str, str]
    def __init__(self, code: _Optional[_Union[ErrorCode, str]] = ..., message: _Optional[str] = ..., hints: _Optional[_Mapping[str, str]] = ...) -> None: ...

class NodeAddress(_message.Message):
    __slots__ = ("node_id", "host", "port", "rack")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    RACK_FIELD_NUMBER: _ClassVar[int]
    node_id: int
    host: str
    port: int
    rack: str
    def __init__(self, node_id: _Optional[int] = ..., host: _Optional[str] = ..., port: _Optional[int] = ..., rack: _Optional[str] = ...) -> None: ...

class TopicPartition(_message.Message):
    __slots__ = ("topic", "partition")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("protocol_min", "protocol_max", "features", "client_id", "software", "cluster_id", "node_id")
    PROTOCOL_MIN_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_MAX_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    SOFTWARE_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    protocol_min: int
    protocol_max: int
    features: _containers.RepeatedScalarFieldContainer[str]
    client_id: str
    software: str
    cluster_id: str
    node_id: int
    def __init__(self, protocol_min: _Optional[int] = ..., protocol_max: _Optional[int] = ..., features: _Optional[_Iterable[str]] = ..., client_id: _Optional[str] = ..., software: _Optional[str] = ..., cluster_id: _Optional[str] = ..., node_id: _Optional[int] = ...) -> None: ...

class HelloReply(_message.Message):
    __slots__ = ("protocol", "features", "cluster_id", "node_id")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    features: _containers.RepeatedScalarFieldContainer[str]
    cluster_id: str
    node_id: int
    def __init__(self, protocol: _Optional[int] = ..., features: _Optional[_Iterable[str]] = ..., cluster_id: _Optional[str] = ..., node_id: _Optional[int] = ...) -> None: ...
