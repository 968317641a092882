from suiro._proto import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MetadataRequest(_message.Message):
    __slots__ = ("hello", "topics", "all_topics", "create_missing")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    ALL_TOPICS_FIELD_NUMBER: _ClassVar[int]
    CREATE_MISSING_FIELD_NUMBER: _ClassVar[int]
    hello: _common_pb2.Hello
    topics: _containers.RepeatedScalarFieldContainer[str]
    all_topics: bool
    create_missing: bool
    def __init__(self, hello: _Optional[_Union[_common_pb2.Hello, _Mapping]] = ..., topics: _Optional[_Iterable[str]] = ..., all_topics: _Optional[bool] = ..., create_missing: _Optional[bool] = ...) -> None: ...

class MetadataReply(_message.Message):
    __slots__ = ("hello", "image_index", "brokers", "topics", "controllers", "active_controller")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    IMAGE_INDEX_FIELD_NUMBER: _ClassVar[int]
    BROKERS_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    CONTROLLERS_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_CONTROLLER_FIELD_NUMBER: _ClassVar[int]
    hello: _common_pb2.HelloReply
    image_index: int
    brokers: _containers.RepeatedCompositeFieldContainer[_common_pb2.NodeAddress]
    topics: _containers.RepeatedCompositeFieldContainer[TopicMetadata]
    controllers: _containers.RepeatedCompositeFieldContainer[_common_pb2.NodeAddress]
    active_controller: int
    def __init__(self, hello: _Optional[_Union[_common_pb2.HelloReply, _Mapping]] = ..., image_index: _Optional[int] = ..., brokers: _Optional[_Iterable[_Union[_common_pb2.NodeAddress, _Mapping]]] = ..., topics: _Optional[_Iterable[_Union[TopicMetadata, _Mapping]]] = ..., controllers: _Optional[_Iterable[_Union[_common_pb2.NodeAddress, _Mapping]]] = ..., active_controller: _Optional[int] = ...) -> None: ...

class TopicMetadata(_message.Message):
    __slots__ = ("topic", "topic_id", "internal", "error", "partitions")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    INTERNAL_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    topic: str
    topic_id: bytes
    internal: bool
    error: _common_pb2.Error
    partitions: _containers.RepeatedCompositeFieldContainer[PartitionMetadata]
    def __init__(self, topic: _Optional[str] = ..., topic_id: _Optional[bytes] = ..., internal: _Optional[bool] = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ..., partitions: _Optional[_Iterable[_Union[PartitionMetadata, _Mapping]]] = ...) -> None: ...

class PartitionMetadata(_message.Message):
    __slots__ = ("partition", "leader", "leader_epoch", "replicas", "isr", "recovery", "adding")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    ISR_FIELD_NUMBER: _ClassVar[int]
    RECOVERY_FIELD_NUMBER: _ClassVar[int]
    ADDING_FIELD_NUMBER: _ClassVar[int]
    partition: int
    leader: int
    leader_epoch: int
    replicas: _containers.RepeatedScalarFieldContainer[int]
    isr: _containers.RepeatedScalarFieldContainer[int]
    recovery: int
    adding: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, partition: _Optional[int] = ..., leader: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., replicas: _Optional[_Iterable[int]] = ..., isr: _Optional[_Iterable[int]] = ..., recovery: _Optional[int] = ..., adding: _Optional[_Iterable[int]] = ...) -> None: ...

class ProduceRequest(_message.Message):
    __slots__ = ("hello", "acks", "timeout_ms", "parts", "transactional_id", "owner_epoch", "batches")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    ACKS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    TRANSACTIONAL_ID_FIELD_NUMBER: _ClassVar[int]
    OWNER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    hello: _common_pb2.Hello
    acks: int
    timeout_ms: int
    parts: _containers.RepeatedCompositeFieldContainer[ProducePart]
    transactional_id: str
    owner_epoch: int
    batches: bytes
    def __init__(self, hello: _Optional[_Union[_common_pb2.Hello, _Mapping]] = ..., acks: _Optional[int] = ..., timeout_ms: _Optional[int] = ..., parts: _Optional[_Iterable[_Union[ProducePart, _Mapping]]] = ..., transactional_id: _Optional[str] = ..., owner_epoch: _Optional[int] = ..., batches: _Optional[bytes] = ...) -> None: ...

class ProducePart(_message.Message):
    __slots__ = ("topic", "partition", "size", "append_at")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    APPEND_AT_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    size: int
    append_at: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., size: _Optional[int] = ..., append_at: _Optional[int] = ...) -> None: ...

class ProduceReply(_message.Message):
    __slots__ = ("hello", "results", "throttle_ms")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    THROTTLE_MS_FIELD_NUMBER: _ClassVar[int]
    hello: _common_pb2.HelloReply
    results: _containers.RepeatedCompositeFieldContainer[ProduceResult]
    throttle_ms: int
    def __init__(self, hello: _Optional[_Union[_common_pb2.HelloReply, _Mapping]] = ..., results: _Optional[_Iterable[_Union[ProduceResult, _Mapping]]] = ..., throttle_ms: _Optional[int] = ...) -> None: ...

class ProduceResult(_message.Message):
    __slots__ = ("error", "base_offset", "log_append_time_ms")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    BASE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LOG_APPEND_TIME_MS_FIELD_NUMBER: _ClassVar[int]
    error: _common_pb2.Error
    base_offset: int
    log_append_time_ms: int
    def __init__(self, error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ..., base_offset: _Optional[int] = ..., log_append_time_ms: _Optional[int] = ...) -> None: ...

class NewProducerRequest(_message.Message):
    __slots__ = ("hello",)
    HELLO_FIELD_NUMBER: _ClassVar[int]
    hello: _common_pb2.Hello
    def __init__(self, hello: _Optional[_Union[_common_pb2.Hello, _Mapping]] = ...) -> None: ...

class NewProducerReply(_message.Message):
    __slots__ = ("producer_id", "producer_epoch")
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    producer_id: int
    producer_epoch: int
    def __init__(self, producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ...) -> None: ...

class FetchRequest(_message.Message):
    __slots__ = ("hello", "isolation", "max_wait_ms", "min_bytes", "max_bytes", "rack", "parts")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    ISOLATION_FIELD_NUMBER: _ClassVar[int]
    MAX_WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    MIN_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    RACK_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    hello: _common_pb2.Hello
    isolation: _common_pb2.Isolation
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    rack: str
    parts: _containers.RepeatedCompositeFieldContainer[FetchPart]
    def __init__(self, hello: _Optional[_Union[_common_pb2.Hello, _Mapping]] = ..., isolation: _Optional[_Union[_common_pb2.Isolation, str]] = ..., max_wait_ms: _Optional[int] = ..., min_bytes: _Optional[int] = ..., max_bytes: _Optional[int] = ..., rack: _Optional[str] = ..., parts: _Optional[_Iterable[_Union[FetchPart, _Mapping]]] = ...) -> None: ...

class FetchPart(_message.Message):
    __slots__ = ("topic", "partition", "offset", "max_bytes", "last_epoch", "topic_id")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    LAST_EPOCH_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    offset: int
    max_bytes: int
    last_epoch: int
    topic_id: bytes
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., offset: _Optional[int] = ..., max_bytes: _Optional[int] = ..., last_epoch: _Optional[int] = ..., topic_id: _Optional[bytes] = ...) -> None: ...

class FetchReply(_message.Message):
    __slots__ = ("hello", "results", "throttle_ms", "batches")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    THROTTLE_MS_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    hello: _common_pb2.HelloReply
    results: _containers.RepeatedCompositeFieldContainer[FetchResult]
    throttle_ms: int
    batches: bytes
    def __init__(self, hello: _Optional[_Union[_common_pb2.HelloReply, _Mapping]] = ..., results: _Optional[_Iterable[_Union[FetchResult, _Mapping]]] = ..., throttle_ms: _Optional[int] = ..., batches: _Optional[bytes] = ...) -> None: ...

class FetchResult(_message.Message):
    __slots__ = ("error", "high_watermark", "last_stable_offset", "log_start", "next_offset", "size", "last_epoch")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    LAST_STABLE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LOG_START_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    LAST_EPOCH_FIELD_NUMBER: _ClassVar[int]
    error: _common_pb2.Error
    high_watermark: int
    last_stable_offset: int
    log_start: int
    next_offset: int
    size: int
    last_epoch: int
    def __init__(self, error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ..., high_watermark: _Optional[int] = ..., last_stable_offset: _Optional[int] = ..., log_start: _Optional[int] = ..., next_offset: _Optional[int] = ..., size: _Optional[int] = ..., last_epoch: _Optional[int] = ...) -> None: ...

class FetchStreamRequest(_message.Message):
    __slots__ = ("hello", "isolation", "rack", "start", "credit", "stop")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    ISOLATION_FIELD_NUMBER: _ClassVar[int]
    RACK_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    hello: _common_pb2.Hello
    isolation: _common_pb2.Isolation
    rack: str
    start: _containers.RepeatedCompositeFieldContainer[FetchStart]
    credit: _containers.RepeatedCompositeFieldContainer[FetchCredit]
    stop: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, hello: _Optional[_Union[_common_pb2.Hello, _Mapping]] = ..., isolation: _Optional[_Union[_common_pb2.Isolation, str]] = ..., rack: _Optional[str] = ..., start: _Optional[_Iterable[_Union[FetchStart, _Mapping]]] = ..., credit: _Optional[_Iterable[_Union[FetchCredit, _Mapping]]] = ..., stop: _Optional[_Iterable[int]] = ...) -> None: ...

class FetchStart(_message.Message):
    __slots__ = ("slot", "topic", "partition", "offset", "last_epoch", "topic_id", "credit")
    SLOT_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LAST_EPOCH_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    slot: int
    topic: str
    partition: int
    offset: int
    last_epoch: int
    topic_id: bytes
    credit: int
    def __init__(self, slot: _Optional[int] = ..., topic: _Optional[str] = ..., partition: _Optional[int] = ..., offset: _Optional[int] = ..., last_epoch: _Optional[int] = ..., topic_id: _Optional[bytes] = ..., credit: _Optional[int] = ...) -> None: ...

class FetchCredit(_message.Message):
    __slots__ = ("slot", "bytes")
    SLOT_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    slot: int
    bytes: int
    def __init__(self, slot: _Optional[int] = ..., bytes: _Optional[int] = ...) -> None: ...

class FetchStreamReply(_message.Message):
    __slots__ = ("hello", "slot", "result", "throttle_ms", "batches")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    SLOT_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    THROTTLE_MS_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    hello: _common_pb2.HelloReply
    slot: int
    result: FetchResult
    throttle_ms: int
    batches: bytes
    def __init__(self, hello: _Optional[_Union[_common_pb2.HelloReply, _Mapping]] = ..., slot: _Optional[int] = ..., result: _Optional[_Union[FetchResult, _Mapping]] = ..., throttle_ms: _Optional[int] = ..., batches: _Optional[bytes] = ...) -> None: ...

class ListOffsetsRequest(_message.Message):
    __slots__ = ("isolation", "queries")
    ISOLATION_FIELD_NUMBER: _ClassVar[int]
    QUERIES_FIELD_NUMBER: _ClassVar[int]
    isolation: _common_pb2.Isolation
    queries: _containers.RepeatedCompositeFieldContainer[OffsetQuery]
    def __init__(self, isolation: _Optional[_Union[_common_pb2.Isolation, str]] = ..., queries: _Optional[_Iterable[_Union[OffsetQuery, _Mapping]]] = ...) -> None: ...

class OffsetQuery(_message.Message):
    __slots__ = ("topic", "partition", "bound", "timestamp_ms")
    class Bound(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        EARLIEST: _ClassVar[OffsetQuery.Bound]
        LATEST: _ClassVar[OffsetQuery.Bound]
        MAX_TIMESTAMP: _ClassVar[OffsetQuery.Bound]
    EARLIEST: OffsetQuery.Bound
    LATEST: OffsetQuery.Bound
    MAX_TIMESTAMP: OffsetQuery.Bound
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    BOUND_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    bound: OffsetQuery.Bound
    timestamp_ms: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., bound: _Optional[_Union[OffsetQuery.Bound, str]] = ..., timestamp_ms: _Optional[int] = ...) -> None: ...

class ListOffsetsReply(_message.Message):
    __slots__ = ("answers",)
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    answers: _containers.RepeatedCompositeFieldContainer[OffsetAnswer]
    def __init__(self, answers: _Optional[_Iterable[_Union[OffsetAnswer, _Mapping]]] = ...) -> None: ...

class OffsetAnswer(_message.Message):
    __slots__ = ("error", "offset", "timestamp_ms", "leader_epoch")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    error: _common_pb2.Error
    offset: int
    timestamp_ms: int
    leader_epoch: int
    def __init__(self, error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ..., offset: _Optional[int] = ..., timestamp_ms: _Optional[int] = ..., leader_epoch: _Optional[int] = ...) -> None: ...

class ReplicateRequest(_message.Message):
    __slots__ = ("hello", "broker_epoch", "positions", "acks", "stops")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    ACKS_FIELD_NUMBER: _ClassVar[int]
    STOPS_FIELD_NUMBER: _ClassVar[int]
    hello: _common_pb2.Hello
    broker_epoch: int
    positions: _containers.RepeatedCompositeFieldContainer[ReplicaPosition]
    acks: _containers.RepeatedCompositeFieldContainer[ReplicaAck]
    stops: _containers.RepeatedCompositeFieldContainer[ReplicaStop]
    def __init__(self, hello: _Optional[_Union[_common_pb2.Hello, _Mapping]] = ..., broker_epoch: _Optional[int] = ..., positions: _Optional[_Iterable[_Union[ReplicaPosition, _Mapping]]] = ..., acks: _Optional[_Iterable[_Union[ReplicaAck, _Mapping]]] = ..., stops: _Optional[_Iterable[_Union[ReplicaStop, _Mapping]]] = ...) -> None: ...

class ReplicaPosition(_message.Message):
    __slots__ = ("topic_id", "partition", "leader_epoch", "log_end", "last_epoch", "log_start", "partition_epoch")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    LOG_END_FIELD_NUMBER: _ClassVar[int]
    LAST_EPOCH_FIELD_NUMBER: _ClassVar[int]
    LOG_START_FIELD_NUMBER: _ClassVar[int]
    PARTITION_EPOCH_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    partition: int
    leader_epoch: int
    log_end: int
    last_epoch: int
    log_start: int
    partition_epoch: int
    def __init__(self, topic_id: _Optional[bytes] = ..., partition: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., log_end: _Optional[int] = ..., last_epoch: _Optional[int] = ..., log_start: _Optional[int] = ..., partition_epoch: _Optional[int] = ...) -> None: ...

class ReplicaAck(_message.Message):
    __slots__ = ("topic_id", "partition", "leader_epoch", "held_end")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    HELD_END_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    partition: int
    leader_epoch: int
    held_end: int
    def __init__(self, topic_id: _Optional[bytes] = ..., partition: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., held_end: _Optional[int] = ...) -> None: ...

class ReplicaStop(_message.Message):
    __slots__ = ("topic_id", "partition")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    partition: int
    def __init__(self, topic_id: _Optional[bytes] = ..., partition: _Optional[int] = ...) -> None: ...

class ReplicateReply(_message.Message):
    __slots__ = ("hello", "parts", "batches")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    hello: _common_pb2.HelloReply
    parts: _containers.RepeatedCompositeFieldContainer[ReplicaPart]
    batches: bytes
    def __init__(self, hello: _Optional[_Union[_common_pb2.HelloReply, _Mapping]] = ..., parts: _Optional[_Iterable[_Union[ReplicaPart, _Mapping]]] = ..., batches: _Optional[bytes] = ...) -> None: ...

class ReplicaPart(_message.Message):
    __slots__ = ("topic_id", "partition", "leader_epoch", "error", "base_offset", "size", "high_watermark", "log_start", "diverging")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    BASE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    LOG_START_FIELD_NUMBER: _ClassVar[int]
    DIVERGING_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    partition: int
    leader_epoch: int
    error: _common_pb2.Error
    base_offset: int
    size: int
    high_watermark: int
    log_start: int
    diverging: Divergence
    def __init__(self, topic_id: _Optional[bytes] = ..., partition: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ..., base_offset: _Optional[int] = ..., size: _Optional[int] = ..., high_watermark: _Optional[int] = ..., log_start: _Optional[int] = ..., diverging: _Optional[_Union[Divergence, _Mapping]] = ...) -> None: ...

class Divergence(_message.Message):
    __slots__ = ("leader_epoch", "end")
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    leader_epoch: int
    end: int
    def __init__(self, leader_epoch: _Optional[int] = ..., end: _Optional[int] = ...) -> None: ...

class WriteTxnMarkersRequest(_message.Message):
    __slots__ = ("markers",)
    MARKERS_FIELD_NUMBER: _ClassVar[int]
    markers: _containers.RepeatedCompositeFieldContainer[TxnMarker]
    def __init__(self, markers: _Optional[_Iterable[_Union[TxnMarker, _Mapping]]] = ...) -> None: ...

class TxnMarker(_message.Message):
    __slots__ = ("producer_id", "producer_epoch", "commit", "owner_epoch", "shard", "partitions")
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    OWNER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    SHARD_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    producer_id: int
    producer_epoch: int
    commit: bool
    owner_epoch: int
    shard: int
    partitions: _containers.RepeatedCompositeFieldContainer[_common_pb2.TopicPartition]
    def __init__(self, producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ..., commit: _Optional[bool] = ..., owner_epoch: _Optional[int] = ..., shard: _Optional[int] = ..., partitions: _Optional[_Iterable[_Union[_common_pb2.TopicPartition, _Mapping]]] = ...) -> None: ...

class WriteTxnMarkersReply(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[MarkerResult]
    def __init__(self, results: _Optional[_Iterable[_Union[MarkerResult, _Mapping]]] = ...) -> None: ...

class MarkerResult(_message.Message):
    __slots__ = ("partition", "producer_id", "error")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    partition: _common_pb2.TopicPartition
    producer_id: int
    error: _common_pb2.Error
    def __init__(self, partition: _Optional[_Union[_common_pb2.TopicPartition, _Mapping]] = ..., producer_id: _Optional[int] = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ...) -> None: ...

class DeleteRecordsRequest(_message.Message):
    __slots__ = ("topic", "partition", "before")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    before: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., before: _Optional[int] = ...) -> None: ...

class DeleteRecordsReply(_message.Message):
    __slots__ = ("log_start",)
    LOG_START_FIELD_NUMBER: _ClassVar[int]
    log_start: int
    def __init__(self, log_start: _Optional[int] = ...) -> None: ...

class DescribeProducersRequest(_message.Message):
    __slots__ = ("topic", "partition")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ...) -> None: ...

class DescribeProducersReply(_message.Message):
    __slots__ = ("producers", "last_stable_offset", "high_watermark")
    PRODUCERS_FIELD_NUMBER: _ClassVar[int]
    LAST_STABLE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    producers: _containers.RepeatedCompositeFieldContainer[ProducerState]
    last_stable_offset: int
    high_watermark: int
    def __init__(self, producers: _Optional[_Iterable[_Union[ProducerState, _Mapping]]] = ..., last_stable_offset: _Optional[int] = ..., high_watermark: _Optional[int] = ...) -> None: ...

class ProducerState(_message.Message):
    __slots__ = ("producer_id", "producer_epoch", "last_sequence", "last_timestamp_ms", "open_transaction_start")
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    LAST_TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    OPEN_TRANSACTION_START_FIELD_NUMBER: _ClassVar[int]
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    open_transaction_start: int
    def __init__(self, producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ..., last_sequence: _Optional[int] = ..., last_timestamp_ms: _Optional[int] = ..., open_transaction_start: _Optional[int] = ...) -> None: ...

class MoveReplicaRequest(_message.Message):
    __slots__ = ("topic", "partition", "to")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    to: str
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., to: _Optional[str] = ...) -> None: ...

class MoveReplicaReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DescribeReplicasRequest(_message.Message):
    __slots__ = ("topics",)
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, topics: _Optional[_Iterable[str]] = ...) -> None: ...

class DescribeReplicasReply(_message.Message):
    __slots__ = ("directories",)
    DIRECTORIES_FIELD_NUMBER: _ClassVar[int]
    directories: _containers.RepeatedCompositeFieldContainer[LogDirectory]
    def __init__(self, directories: _Optional[_Iterable[_Union[LogDirectory, _Mapping]]] = ...) -> None: ...

class LogDirectory(_message.Message):
    __slots__ = ("path", "error", "free_bytes", "replicas")
    PATH_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    FREE_BYTES_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    path: str
    error: _common_pb2.Error
    free_bytes: int
    replicas: _containers.RepeatedCompositeFieldContainer[ReplicaInfo]
    def __init__(self, path: _Optional[str] = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ..., free_bytes: _Optional[int] = ..., replicas: _Optional[_Iterable[_Union[ReplicaInfo, _Mapping]]] = ...) -> None: ...

class ReplicaInfo(_message.Message):
    __slots__ = ("topic", "partition", "size_bytes", "log_start", "last_stable_offset", "high_watermark", "log_end", "leader_epoch", "leads", "segments", "moving_to", "moved_bytes")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    LOG_START_FIELD_NUMBER: _ClassVar[int]
    LAST_STABLE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    LOG_END_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    LEADS_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    MOVING_TO_FIELD_NUMBER: _ClassVar[int]
    MOVED_BYTES_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    size_bytes: int
    log_start: int
    last_stable_offset: int
    high_watermark: int
    log_end: int
    leader_epoch: int
    leads: bool
    segments: int
    moving_to: str
    moved_bytes: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., size_bytes: _Optional[int] = ..., log_start: _Optional[int] = ..., last_stable_offset: _Optional[int] = ..., high_watermark: _Optional[int] = ..., log_end: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., leads: _Optional[bool] = ..., segments: _Optional[int] = ..., moving_to: _Optional[str] = ..., moved_bytes: _Optional[int] = ...) -> None: ...
