from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MetadataRecord(_message.Message):
    __slots__ = ("node_registered", "node_fenced", "node_unfenced", "node_shutting_down", "node_unregistered", "node_epoch_reached", "topic_created", "topic_deleted", "partition_created", "partition_changed", "config_set", "feature_level_set", "reassignment_throttle_set", "producer_ids_allocated", "shard_owned", "user_scram_set", "user_scram_removed", "acl_added", "acl_removed", "quota_set")
    NODE_REGISTERED_FIELD_NUMBER: _ClassVar[int]
    NODE_FENCED_FIELD_NUMBER: _ClassVar[int]
    NODE_UNFENCED_FIELD_NUMBER: _ClassVar[int]
    NODE_SHUTTING_DOWN_FIELD_NUMBER: _ClassVar[int]
    NODE_UNREGISTERED_FIELD_NUMBER: _ClassVar[int]
    NODE_EPOCH_REACHED_FIELD_NUMBER: _ClassVar[int]
    TOPIC_CREATED_FIELD_NUMBER: _ClassVar[int]
    TOPIC_DELETED_FIELD_NUMBER: _ClassVar[int]
    PARTITION_CREATED_FIELD_NUMBER: _ClassVar[int]
    PARTITION_CHANGED_FIELD_NUMBER: _ClassVar[int]
    CONFIG_SET_FIELD_NUMBER: _ClassVar[int]
    FEATURE_LEVEL_SET_FIELD_NUMBER: _ClassVar[int]
    REASSIGNMENT_THROTTLE_SET_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_IDS_ALLOCATED_FIELD_NUMBER: _ClassVar[int]
    SHARD_OWNED_FIELD_NUMBER: _ClassVar[int]
    USER_SCRAM_SET_FIELD_NUMBER: _ClassVar[int]
    USER_SCRAM_REMOVED_FIELD_NUMBER: _ClassVar[int]
    ACL_ADDED_FIELD_NUMBER: _ClassVar[int]
    ACL_REMOVED_FIELD_NUMBER: _ClassVar[int]
    QUOTA_SET_FIELD_NUMBER: _ClassVar[int]
    node_registered: NodeRegistered
    node_fenced: NodeFenced
    node_unfenced: NodeUnfenced
    node_shutting_down: NodeShuttingDown
    node_unregistered: NodeUnregistered
    node_epoch_reached: NodeEpochReached
    topic_created: TopicCreated
    topic_deleted: TopicDeleted
    partition_created: PartitionState
    partition_changed: PartitionState
    config_set: ConfigSet
    feature_level_set: FeatureLevelSet
    reassignment_throttle_set: ReassignmentThrottleSet
    producer_ids_allocated: ProducerIdsAllocated
    shard_owned: ShardOwned
    user_scram_set: UserScramSet
    user_scram_removed: UserScramRemoved
    acl_added: Acl
    acl_removed: Acl
    quota_set: QuotaSet
    def __init__(self, node_registered: _Optional[_Union[NodeRegistered, _Mapping]] = ..., node_fenced: _Optional[_Union[NodeFenced, _Mapping]] = ..., node_unfenced: _Optional[_Union[NodeUnfenced, _Mapping]] = ..., node_shutting_down: _Optional[_Union[NodeShuttingDown, _Mapping]] = ..., node_unregistered: _Optional[_Union[NodeUnregistered, _Mapping]] = ..., node_epoch_reached: _Optional[_Union[NodeEpochReached, _Mapping]] = ..., topic_created: _Optional[_Union[TopicCreated, _Mapping]] = ..., topic_deleted: _Optional[_Union[TopicDeleted, _Mapping]] = ..., partition_created: _Optional[_Union[PartitionState, _Mapping]] = ..., partition_changed: _Optional[_Union[PartitionState, _Mapping]] = ..., config_set: _Optional[_Union[ConfigSet, _Mapping]] = ..., feature_level_set: _Optional[_Union[FeatureLevelSet, _Mapping]] = ..., reassignment_throttle_set: _Optional[_Union[ReassignmentThrottleSet, _Mapping]] = ..., producer_ids_allocated: _Optional[_Union[ProducerIdsAllocated, _Mapping]] = ..., shard_owned: _Optional[_Union[ShardOwned, _Mapping]] = ..., user_scram_set: _Optional[_Union[UserScramSet, _Mapping]] = ..., user_scram_removed: _Optional[_Union[UserScramRemoved, _Mapping]] = ..., acl_added: _Optional[_Union[Acl, _Mapping]] = ..., acl_removed: _Optional[_Union[Acl, _Mapping]] = ..., quota_set: _Optional[_Union[QuotaSet, _Mapping]] = ...) -> None: ...

class NodeRegistered(_message.Message):
    __slots__ = ("node_id", "incarnation", "broker_epoch", "roles", "address", "rack", "log_directories", "features", "software", "clean_shutdown", "lost_directories")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    RACK_FIELD_NUMBER: _ClassVar[int]
    LOG_DIRECTORIES_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    SOFTWARE_FIELD_NUMBER: _ClassVar[int]
    CLEAN_SHUTDOWN_FIELD_NUMBER: _ClassVar[int]
    LOST_DIRECTORIES_FIELD_NUMBER: _ClassVar[int]
    node_id: int
    incarnation: bytes
    broker_epoch: int
    roles: _containers.RepeatedScalarFieldContainer[str]
    address: Address
    rack: str
    log_directories: _containers.RepeatedScalarFieldContainer[str]
    features: _containers.RepeatedScalarFieldContainer[str]
    software: str
    clean_shutdown: bool
    lost_directories: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, node_id: _Optional[int] = ..., incarnation: _Optional[bytes] = ..., broker_epoch: _Optional[int] = ..., roles: _Optional[_Iterable[str]] = ..., address: _Optional[_Union[Address, _Mapping]] = ..., rack: _Optional[str] = ..., log_directories: _Optional[_Iterable[str]] = ..., features: _Optional[_Iterable[str]] = ..., software: _Optional[str] = ..., clean_shutdown: _Optional[bool] = ..., lost_directories: _Optional[_Iterable[str]] = ...) -> None: ...

class Address(_message.Message):
    __slots__ = ("host", "port")
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    host: str
    port: int
    def __init__(self, host: _Optional[str] = ..., port: _Optional[int] = ...) -> None: ...

class NodeFenced(_message.Message):
    __slots__ = ("node_id", "broker_epoch")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    node_id: int
    broker_epoch: int
    def __init__(self, node_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ...) -> None: ...

class NodeUnfenced(_message.Message):
    __slots__ = ("node_id", "broker_epoch")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    node_id: int
    broker_epoch: int
    def __init__(self, node_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ...) -> None: ...

class NodeShuttingDown(_message.Message):
    __slots__ = ("node_id", "broker_epoch")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    node_id: int
    broker_epoch: int
    def __init__(self, node_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ...) -> None: ...

class NodeUnregistered(_message.Message):
    __slots__ = ("node_id", "broker_epoch")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    node_id: int
    broker_epoch: int
    def __init__(self, node_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ...) -> None: ...

class NodeEpochReached(_message.Message):
    __slots__ = ("broker_epoch",)
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    broker_epoch: int
    def __init__(self, broker_epoch: _Optional[int] = ...) -> None: ...

class TopicCreated(_message.Message):
    __slots__ = ("topic_id", "name")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    name: str
    def __init__(self, topic_id: _Optional[bytes] = ..., name: _Optional[str] = ...) -> None: ...

class TopicDeleted(_message.Message):
    __slots__ = ("topic_id", "name")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    name: str
    def __init__(self, topic_id: _Optional[bytes] = ..., name: _Optional[str] = ...) -> None: ...

class PartitionState(_message.Message):
    __slots__ = ("topic_id", "partition", "replicas", "isr", "leader", "leader_epoch", "partition_epoch", "recovery", "reassignment", "offline")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    ISR_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    PARTITION_EPOCH_FIELD_NUMBER: _ClassVar[int]
    RECOVERY_FIELD_NUMBER: _ClassVar[int]
    REASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    OFFLINE_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    partition: int
    replicas: _containers.RepeatedScalarFieldContainer[int]
    isr: _containers.RepeatedScalarFieldContainer[int]
    leader: int
    leader_epoch: int
    partition_epoch: int
    recovery: int
    reassignment: Reassignment
    offline: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, topic_id: _Optional[bytes] = ..., partition: _Optional[int] = ..., replicas: _Optional[_Iterable[int]] = ..., isr: _Optional[_Iterable[int]] = ..., leader: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., partition_epoch: _Optional[int] = ..., recovery: _Optional[int] = ..., reassignment: _Optional[_Union[Reassignment, _Mapping]] = ..., offline: _Optional[_Iterable[int]] = ...) -> None: ...

class Reassignment(_message.Message):
    __slots__ = ("target", "adding")
    TARGET_FIELD_NUMBER: _ClassVar[int]
    ADDING_FIELD_NUMBER: _ClassVar[int]
    target: _containers.RepeatedScalarFieldContainer[int]
    adding: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, target: _Optional[_Iterable[int]] = ..., adding: _Optional[_Iterable[int]] = ...) -> None: ...

class ConfigSet(_message.Message):
    __slots__ = ("resource", "name", "key", "value")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    resource: int
    name: str
    key: str
    value: str
    def __init__(self, resource: _Optional[int] = ..., name: _Optional[str] = ..., key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class FeatureLevelSet(_message.Message):
    __slots__ = ("name", "level")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    name: str
    level: int
    def __init__(self, name: _Optional[str] = ..., level: _Optional[int] = ...) -> None: ...

class ReassignmentThrottleSet(_message.Message):
    __slots__ = ("bytes_per_s",)
    BYTES_PER_S_FIELD_NUMBER: _ClassVar[int]
    bytes_per_s: int
    def __init__(self, bytes_per_s: _Optional[int] = ...) -> None: ...

class ProducerIdsAllocated(_message.Message):
    __slots__ = ("node_id", "start", "end")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    node_id: int
    start: int
    end: int
    def __init__(self, node_id: _Optional[int] = ..., start: _Optional[int] = ..., end: _Optional[int] = ...) -> None: ...

class ShardOwned(_message.Message):
    __slots__ = ("kind", "shard", "owner", "owner_epoch")
    KIND_FIELD_NUMBER: _ClassVar[int]
    SHARD_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    OWNER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    kind: str
    shard: int
    owner: int
    owner_epoch: int
    def __init__(self, kind: _Optional[str] = ..., shard: _Optional[int] = ..., owner: _Optional[int] = ..., owner_epoch: _Optional[int] = ...) -> None: ...

class UserScramSet(_message.Message):
    __slots__ = ("user", "mechanism", "salt", "stored_key", "server_key", "iterations")
    USER_FIELD_NUMBER: _ClassVar[int]
    MECHANISM_FIELD_NUMBER: _ClassVar[int]
    SALT_FIELD_NUMBER: _ClassVar[int]
    STORED_KEY_FIELD_NUMBER: _ClassVar[int]
    SERVER_KEY_FIELD_NUMBER: _ClassVar[int]
    ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    user: str
    mechanism: str
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int
    def __init__(self, user: _Optional[str] = ..., mechanism: _Optional[str] = ..., salt: _Optional[bytes] = ..., stored_key: _Optional[bytes] = ..., server_key: _Optional[bytes] = ..., iterations: _Optional[int] = ...) -> None: ...

class UserScramRemoved(_message.Message):
    __slots__ = ("user", "mechanism")
    USER_FIELD_NUMBER: _ClassVar[int]
    MECHANISM_FIELD_NUMBER: _ClassVar[int]
    user: str
    mechanism: str
    def __init__(self, user: _Optional[str] = ..., mechanism: _Optional[str] = ...) -> None: ...

class Acl(_message.Message):
    __slots__ = ("resource", "name", "pattern", "principal", "host", "operation", "permission")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    PERMISSION_FIELD_NUMBER: _ClassVar[int]
    resource: str
    name: str
    pattern: str
    principal: str
    host: str
    operation: str
    permission: str
    def __init__(self, resource: _Optional[str] = ..., name: _Optional[str] = ..., pattern: _Optional[str] = ..., principal: _Optional[str] = ..., host: _Optional[str] = ..., operation: _Optional[str] = ..., permission: _Optional[str] = ...) -> None: ...

class QuotaSet(_message.Message):
    __slots__ = ("user", "client_id", "key", "value")
    USER_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    user: str
    client_id: str
    key: str
    value: float
    def __init__(self, user: _Optional[str] = ..., client_id: _Optional[str] = ..., key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
