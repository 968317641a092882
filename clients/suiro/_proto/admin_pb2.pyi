from suiro._proto import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ConfigResource(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TOPIC: _ClassVar[ConfigResource]
    BROKER: _ClassVar[ConfigResource]
    CLUSTER: _ClassVar[ConfigResource]
TOPIC: ConfigResource
BROKER: ConfigResource
CLUSTER: ConfigResource

class CreateTopicsRequest(_message.Message):
    __slots__ = ("topics", "validate_only")
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[NewTopic]
    validate_only: bool
    def __init__(self, topics: _Optional[_Iterable[_Union[NewTopic, _Mapping]]] = ..., validate_only: _Optional[bool] = ...) -> None: ...

class NewTopic(_message.Message):
    __slots__ = ("name", "partitions", "replication_factor", "configs", "assignment")
    class ConfigsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    REPLICATION_FACTOR_FIELD_NUMBER: _ClassVar[int]
    CONFIGS_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    name: str
    partitions: int
    replication_factor: int
    configs: _containers.ScalarMap[str, str]
    assignment: _containers.RepeatedCompositeFieldContainer[ReplicaList]
    def __init__(self, name: _Optional[str] = ..., partitions: _Optional[int] = ..., replication_factor: _Optional[int] = ..., configs: _Optional[_Mapping[str, str]] = ..., assignment: _Optional[_Iterable[_Union[ReplicaList, _Mapping]]] = ...) -> None: ...

class ReplicaList(_message.Message):
    __slots__ = ("nodes",)
    NODES_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, nodes: _Optional[_Iterable[int]] = ...) -> None: ...

class CreateTopicsReply(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[TopicResult]
    def __init__(self, results: _Optional[_Iterable[_Union[TopicResult, _Mapping]]] = ...) -> None: ...

class TopicResult(_message.Message):
    __slots__ = ("name", "topic_id", "error", "partitions", "replication_factor")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    REPLICATION_FACTOR_FIELD_NUMBER: _ClassVar[int]
    name: str
    topic_id: bytes
    error: _common_pb2.Error
    partitions: int
    replication_factor: int
    def __init__(self, name: _Optional[str] = ..., topic_id: _Optional[bytes] = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ..., partitions: _Optional[int] = ..., replication_factor: _Optional[int] = ...) -> None: ...

class DeleteTopicsRequest(_message.Message):
    __slots__ = ("names",)
    NAMES_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, names: _Optional[_Iterable[str]] = ...) -> None: ...

class DeleteTopicsReply(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[TopicResult]
    def __init__(self, results: _Optional[_Iterable[_Union[TopicResult, _Mapping]]] = ...) -> None: ...

class AddTopicPartitionsRequest(_message.Message):
    __slots__ = ("topic", "total", "validate_only")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    topic: str
    total: int
    validate_only: bool
    def __init__(self, topic: _Optional[str] = ..., total: _Optional[int] = ..., validate_only: _Optional[bool] = ...) -> None: ...

class AddTopicPartitionsReply(_message.Message):
    __slots__ = ("partitions",)
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    partitions: int
    def __init__(self, partitions: _Optional[int] = ...) -> None: ...

class DescribeConfigsRequest(_message.Message):
    __slots__ = ("resource", "name")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    resource: ConfigResource
    name: str
    def __init__(self, resource: _Optional[_Union[ConfigResource, str]] = ..., name: _Optional[str] = ...) -> None: ...

class DescribeConfigsReply(_message.Message):
    __slots__ = ("entries",)
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[ConfigEntry]
    def __init__(self, entries: _Optional[_Iterable[_Union[ConfigEntry, _Mapping]]] = ...) -> None: ...

class ConfigEntry(_message.Message):
    __slots__ = ("key", "value", "default_value", "is_default", "source", "doc")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    IS_DEFAULT_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    DOC_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    default_value: str
    is_default: bool
    source: str
    doc: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ..., default_value: _Optional[str] = ..., is_default: _Optional[bool] = ..., source: _Optional[str] = ..., doc: _Optional[str] = ...) -> None: ...

class AlterConfigsRequest(_message.Message):
    __slots__ = ("resource", "name", "set", "unset", "validate_only")
    class SetEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SET_FIELD_NUMBER: _ClassVar[int]
    UNSET_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    resource: ConfigResource
    name: str
    set: _containers.ScalarMap[str, str]
    unset: _containers.RepeatedScalarFieldContainer[str]
    validate_only: bool
    def __init__(self, resource: _Optional[_Union[ConfigResource, str]] = ..., name: _Optional[str] = ..., set: _Optional[_Mapping[str, str]] = ..., unset: _Optional[_Iterable[str]] = ..., validate_only: _Optional[bool] = ...) -> None: ...

class AlterConfigsReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ElectLeadersRequest(_message.Message):
    __slots__ = ("partitions", "unclean")
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    UNCLEAN_FIELD_NUMBER: _ClassVar[int]
    partitions: _containers.RepeatedCompositeFieldContainer[_common_pb2.TopicPartition]
    unclean: bool
    def __init__(self, partitions: _Optional[_Iterable[_Union[_common_pb2.TopicPartition, _Mapping]]] = ..., unclean: _Optional[bool] = ...) -> None: ...

class ElectLeadersReply(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[ElectionResult]
    def __init__(self, results: _Optional[_Iterable[_Union[ElectionResult, _Mapping]]] = ...) -> None: ...

class ElectionResult(_message.Message):
    __slots__ = ("partition", "leader", "error")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    partition: _common_pb2.TopicPartition
    leader: int
    error: _common_pb2.Error
    def __init__(self, partition: _Optional[_Union[_common_pb2.TopicPartition, _Mapping]] = ..., leader: _Optional[int] = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ...) -> None: ...

class AlterReassignmentsRequest(_message.Message):
    __slots__ = ("reassignments", "throttle_bytes_per_s", "unthrottled")
    REASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    THROTTLE_BYTES_PER_S_FIELD_NUMBER: _ClassVar[int]
    UNTHROTTLED_FIELD_NUMBER: _ClassVar[int]
    reassignments: _containers.RepeatedCompositeFieldContainer[NewReassignment]
    throttle_bytes_per_s: int
    unthrottled: bool
    def __init__(self, reassignments: _Optional[_Iterable[_Union[NewReassignment, _Mapping]]] = ..., throttle_bytes_per_s: _Optional[int] = ..., unthrottled: _Optional[bool] = ...) -> None: ...

class NewReassignment(_message.Message):
    __slots__ = ("partition", "replicas")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    partition: _common_pb2.TopicPartition
    replicas: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, partition: _Optional[_Union[_common_pb2.TopicPartition, _Mapping]] = ..., replicas: _Optional[_Iterable[int]] = ...) -> None: ...

class AlterReassignmentsReply(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[ElectionResult]
    def __init__(self, results: _Optional[_Iterable[_Union[ElectionResult, _Mapping]]] = ...) -> None: ...

class ListReassignmentsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListReassignmentsReply(_message.Message):
    __slots__ = ("reassignments", "throttle_bytes_per_s")
    REASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    THROTTLE_BYTES_PER_S_FIELD_NUMBER: _ClassVar[int]
    reassignments: _containers.RepeatedCompositeFieldContainer[ReassignmentState]
    throttle_bytes_per_s: int
    def __init__(self, reassignments: _Optional[_Iterable[_Union[ReassignmentState, _Mapping]]] = ..., throttle_bytes_per_s: _Optional[int] = ...) -> None: ...

class ReassignmentState(_message.Message):
    __slots__ = ("partition", "replicas", "adding", "removing", "isr", "leader")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    ADDING_FIELD_NUMBER: _ClassVar[int]
    REMOVING_FIELD_NUMBER: _ClassVar[int]
    ISR_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    partition: _common_pb2.TopicPartition
    replicas: _containers.RepeatedScalarFieldContainer[int]
    adding: _containers.RepeatedScalarFieldContainer[int]
    removing: _containers.RepeatedScalarFieldContainer[int]
    isr: _containers.RepeatedScalarFieldContainer[int]
    leader: int
    def __init__(self, partition: _Optional[_Union[_common_pb2.TopicPartition, _Mapping]] = ..., replicas: _Optional[_Iterable[int]] = ..., adding: _Optional[_Iterable[int]] = ..., removing: _Optional[_Iterable[int]] = ..., isr: _Optional[_Iterable[int]] = ..., leader: _Optional[int] = ...) -> None: ...

class DescribeClusterRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DescribeClusterReply(_message.Message):
    __slots__ = ("cluster_id", "nodes", "active_controller", "image_index", "feature_level")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_CONTROLLER_FIELD_NUMBER: _ClassVar[int]
    IMAGE_INDEX_FIELD_NUMBER: _ClassVar[int]
    FEATURE_LEVEL_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    nodes: _containers.RepeatedCompositeFieldContainer[NodeInfo]
    active_controller: int
    image_index: int
    feature_level: int
    def __init__(self, cluster_id: _Optional[str] = ..., nodes: _Optional[_Iterable[_Union[NodeInfo, _Mapping]]] = ..., active_controller: _Optional[int] = ..., image_index: _Optional[int] = ..., feature_level: _Optional[int] = ...) -> None: ...

class NodeInfo(_message.Message):
    __slots__ = ("address", "roles", "broker_epoch", "fenced", "shutting_down", "leaders", "replicas", "software")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    FENCED_FIELD_NUMBER: _ClassVar[int]
    SHUTTING_DOWN_FIELD_NUMBER: _ClassVar[int]
    LEADERS_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    SOFTWARE_FIELD_NUMBER: _ClassVar[int]
    address: _common_pb2.NodeAddress
    roles: _containers.RepeatedScalarFieldContainer[str]
    broker_epoch: int
    fenced: bool
    shutting_down: bool
    leaders: int
    replicas: int
    software: str
    def __init__(self, address: _Optional[_Union[_common_pb2.NodeAddress, _Mapping]] = ..., roles: _Optional[_Iterable[str]] = ..., broker_epoch: _Optional[int] = ..., fenced: _Optional[bool] = ..., shutting_down: _Optional[bool] = ..., leaders: _Optional[int] = ..., replicas: _Optional[int] = ..., software: _Optional[str] = ...) -> None: ...

class UnregisterNodeRequest(_message.Message):
    __slots__ = ("node_id",)
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    node_id: int
    def __init__(self, node_id: _Optional[int] = ...) -> None: ...

class UnregisterNodeReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DescribeQuorumRequest(_message.Message):
    __slots__ = ("with_state_hash",)
    WITH_STATE_HASH_FIELD_NUMBER: _ClassVar[int]
    with_state_hash: bool
    def __init__(self, with_state_hash: _Optional[bool] = ...) -> None: ...

class DescribeQuorumReply(_message.Message):
    __slots__ = ("leader", "term", "commit_index", "last_index", "snapshot_index", "members", "state_hash", "applied_index", "node_id")
    LEADER_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    COMMIT_INDEX_FIELD_NUMBER: _ClassVar[int]
    LAST_INDEX_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_INDEX_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    STATE_HASH_FIELD_NUMBER: _ClassVar[int]
    APPLIED_INDEX_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    leader: int
    term: int
    commit_index: int
    last_index: int
    snapshot_index: int
    members: _containers.RepeatedCompositeFieldContainer[QuorumMember]
    state_hash: str
    applied_index: int
    node_id: int
    def __init__(self, leader: _Optional[int] = ..., term: _Optional[int] = ..., commit_index: _Optional[int] = ..., last_index: _Optional[int] = ..., snapshot_index: _Optional[int] = ..., members: _Optional[_Iterable[_Union[QuorumMember, _Mapping]]] = ..., state_hash: _Optional[str] = ..., applied_index: _Optional[int] = ..., node_id: _Optional[int] = ...) -> None: ...

class QuorumMember(_message.Message):
    __slots__ = ("address", "voter", "directory_id", "match_index", "recently_active")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    VOTER_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    MATCH_INDEX_FIELD_NUMBER: _ClassVar[int]
    RECENTLY_ACTIVE_FIELD_NUMBER: _ClassVar[int]
    address: _common_pb2.NodeAddress
    voter: bool
    directory_id: bytes
    match_index: int
    recently_active: bool
    def __init__(self, address: _Optional[_Union[_common_pb2.NodeAddress, _Mapping]] = ..., voter: _Optional[bool] = ..., directory_id: _Optional[bytes] = ..., match_index: _Optional[int] = ..., recently_active: _Optional[bool] = ...) -> None: ...

class AddControllerRequest(_message.Message):
    __slots__ = ("address", "directory_id")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    address: _common_pb2.NodeAddress
    directory_id: bytes
    def __init__(self, address: _Optional[_Union[_common_pb2.NodeAddress, _Mapping]] = ..., directory_id: _Optional[bytes] = ...) -> None: ...

class AddControllerReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RemoveControllerRequest(_message.Message):
    __slots__ = ("node_id", "directory_id")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    node_id: int
    directory_id: bytes
    def __init__(self, node_id: _Optional[int] = ..., directory_id: _Optional[bytes] = ...) -> None: ...

class RemoveControllerReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TransferControllerRequest(_message.Message):
    __slots__ = ("to",)
    TO_FIELD_NUMBER: _ClassVar[int]
    to: int
    def __init__(self, to: _Optional[int] = ...) -> None: ...

class TransferControllerReply(_message.Message):
    __slots__ = ("leader",)
    LEADER_FIELD_NUMBER: _ClassVar[int]
    leader: int
    def __init__(self, leader: _Optional[int] = ...) -> None: ...
