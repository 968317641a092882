from suiro._proto import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FindTxnCoordinatorRequest(_message.Message):
    __slots__ = ("transactional_id",)
    TRANSACTIONAL_ID_FIELD_NUMBER: _ClassVar[int]
    transactional_id: str
    def __init__(self, transactional_id: _Optional[str] = ...) -> None: ...

class FindTxnCoordinatorReply(_message.Message):
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

class InitProducerRequest(_message.Message):
    __slots__ = ("hello", "transactional_id", "transaction_timeout_ms", "producer_id", "producer_epoch")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    TRANSACTIONAL_ID_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    hello: _common_pb2.Hello
    transactional_id: str
    transaction_timeout_ms: int
    producer_id: int
    producer_epoch: int
    def __init__(self, hello: _Optional[_Union[_common_pb2.Hello, _Mapping]] = ..., transactional_id: _Optional[str] = ..., transaction_timeout_ms: _Optional[int] = ..., producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ...) -> None: ...

class InitProducerReply(_message.Message):
    __slots__ = ("producer_id", "producer_epoch")
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    producer_id: int
    producer_epoch: int
    def __init__(self, producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ...) -> None: ...

class AddPartitionsRequest(_message.Message):
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "partitions")
    TRANSACTIONAL_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: _containers.RepeatedCompositeFieldContainer[_common_pb2.TopicPartition]
    def __init__(self, transactional_id: _Optional[str] = ..., producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ..., partitions: _Optional[_Iterable[_Union[_common_pb2.TopicPartition, _Mapping]]] = ...) -> None: ...

class AddPartitionsReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class VerifyPartitionsRequest(_message.Message):
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "partitions", "groups")
    TRANSACTIONAL_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: _containers.RepeatedCompositeFieldContainer[_common_pb2.TopicPartition]
    groups: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, transactional_id: _Optional[str] = ..., producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ..., partitions: _Optional[_Iterable[_Union[_common_pb2.TopicPartition, _Mapping]]] = ..., groups: _Optional[_Iterable[str]] = ...) -> None: ...

class VerifyPartitionsReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AddOffsetsRequest(_message.Message):
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "group")
    TRANSACTIONAL_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    transactional_id: str
    producer_id: int
    producer_epoch: int
    group: str
    def __init__(self, transactional_id: _Optional[str] = ..., producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ..., group: _Optional[str] = ...) -> None: ...

class AddOffsetsReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class EndTxnRequest(_message.Message):
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "commit")
    TRANSACTIONAL_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    transactional_id: str
    producer_id: int
    producer_epoch: int
    commit: bool
    def __init__(self, transactional_id: _Optional[str] = ..., producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ..., commit: _Optional[bool] = ...) -> None: ...

class EndTxnReply(_message.Message):
    __slots__ = ("producer_id", "producer_epoch")
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    producer_id: int
    producer_epoch: int
    def __init__(self, producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ...) -> None: ...

class OpenSharedRequest(_message.Message):
    __slots__ = ("name", "sequence", "attempt", "writer", "timeout_ms", "hello")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    WRITER_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    HELLO_FIELD_NUMBER: _ClassVar[int]
    name: str
    sequence: int
    attempt: str
    writer: str
    timeout_ms: int
    hello: _common_pb2.Hello
    def __init__(self, name: _Optional[str] = ..., sequence: _Optional[int] = ..., attempt: _Optional[str] = ..., writer: _Optional[str] = ..., timeout_ms: _Optional[int] = ..., hello: _Optional[_Union[_common_pb2.Hello, _Mapping]] = ...) -> None: ...

class OpenSharedReply(_message.Message):
    __slots__ = ("already_committed", "transactional_id", "producer_id", "producer_epoch")
    ALREADY_COMMITTED_FIELD_NUMBER: _ClassVar[int]
    TRANSACTIONAL_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    already_committed: bool
    transactional_id: str
    producer_id: int
    producer_epoch: int
    def __init__(self, already_committed: _Optional[bool] = ..., transactional_id: _Optional[str] = ..., producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ...) -> None: ...

class PrepareWriterRequest(_message.Message):
    __slots__ = ("transactional_id", "producer_id", "producer_epoch")
    TRANSACTIONAL_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    transactional_id: str
    producer_id: int
    producer_epoch: int
    def __init__(self, transactional_id: _Optional[str] = ..., producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ...) -> None: ...

class PrepareWriterReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class EndSharedRequest(_message.Message):
    __slots__ = ("name", "sequence", "attempt", "commit", "producer_ids")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_IDS_FIELD_NUMBER: _ClassVar[int]
    name: str
    sequence: int
    attempt: str
    commit: bool
    producer_ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, name: _Optional[str] = ..., sequence: _Optional[int] = ..., attempt: _Optional[str] = ..., commit: _Optional[bool] = ..., producer_ids: _Optional[_Iterable[int]] = ...) -> None: ...

class EndSharedReply(_message.Message):
    __slots__ = ("already_committed",)
    ALREADY_COMMITTED_FIELD_NUMBER: _ClassVar[int]
    already_committed: bool
    def __init__(self, already_committed: _Optional[bool] = ...) -> None: ...

class ListTransactionsRequest(_message.Message):
    __slots__ = ("states", "older_than_ms")
    STATES_FIELD_NUMBER: _ClassVar[int]
    OLDER_THAN_MS_FIELD_NUMBER: _ClassVar[int]
    states: _containers.RepeatedScalarFieldContainer[str]
    older_than_ms: int
    def __init__(self, states: _Optional[_Iterable[str]] = ..., older_than_ms: _Optional[int] = ...) -> None: ...

class ListTransactionsReply(_message.Message):
    __slots__ = ("transactions",)
    TRANSACTIONS_FIELD_NUMBER: _ClassVar[int]
    transactions: _containers.RepeatedCompositeFieldContainer[TransactionSummary]
    def __init__(self, transactions: _Optional[_Iterable[_Union[TransactionSummary, _Mapping]]] = ...) -> None: ...

class TransactionSummary(_message.Message):
    __slots__ = ("transactional_id", "state", "producer_id", "producer_epoch", "started_at_ms", "client")
    TRANSACTIONAL_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    started_at_ms: int
    client: str
    def __init__(self, transactional_id: _Optional[str] = ..., state: _Optional[str] = ..., producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ..., started_at_ms: _Optional[int] = ..., client: _Optional[str] = ...) -> None: ...

class DescribeTransactionRequest(_message.Message):
    __slots__ = ("transactional_id",)
    TRANSACTIONAL_ID_FIELD_NUMBER: _ClassVar[int]
    transactional_id: str
    def __init__(self, transactional_id: _Optional[str] = ...) -> None: ...

class DescribeTransactionReply(_message.Message):
    __slots__ = ("summary", "timeout_ms", "partitions", "groups", "writers", "last_committed_sequence", "coordinator", "last_outcome", "fenced_by", "fenced_at_ms")
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    WRITERS_FIELD_NUMBER: _ClassVar[int]
    LAST_COMMITTED_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    LAST_OUTCOME_FIELD_NUMBER: _ClassVar[int]
    FENCED_BY_FIELD_NUMBER: _ClassVar[int]
    FENCED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    summary: TransactionSummary
    timeout_ms: int
    partitions: _containers.RepeatedCompositeFieldContainer[_common_pb2.TopicPartition]
    groups: _containers.RepeatedScalarFieldContainer[str]
    writers: _containers.RepeatedCompositeFieldContainer[SharedWriter]
    last_committed_sequence: int
    coordinator: _common_pb2.NodeAddress
    last_outcome: str
    fenced_by: str
    fenced_at_ms: int
    def __init__(self, summary: _Optional[_Union[TransactionSummary, _Mapping]] = ..., timeout_ms: _Optional[int] = ..., partitions: _Optional[_Iterable[_Union[_common_pb2.TopicPartition, _Mapping]]] = ..., groups: _Optional[_Iterable[str]] = ..., writers: _Optional[_Iterable[_Union[SharedWriter, _Mapping]]] = ..., last_committed_sequence: _Optional[int] = ..., coordinator: _Optional[_Union[_common_pb2.NodeAddress, _Mapping]] = ..., last_outcome: _Optional[str] = ..., fenced_by: _Optional[str] = ..., fenced_at_ms: _Optional[int] = ...) -> None: ...

class SharedWriter(_message.Message):
    __slots__ = ("writer", "producer_id", "prepared", "partitions")
    WRITER_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PREPARED_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    writer: str
    producer_id: int
    prepared: bool
    partitions: _containers.RepeatedCompositeFieldContainer[_common_pb2.TopicPartition]
    def __init__(self, writer: _Optional[str] = ..., producer_id: _Optional[int] = ..., prepared: _Optional[bool] = ..., partitions: _Optional[_Iterable[_Union[_common_pb2.TopicPartition, _Mapping]]] = ...) -> None: ...

class AbortTransactionRequest(_message.Message):
    __slots__ = ("transactional_id",)
    TRANSACTIONAL_ID_FIELD_NUMBER: _ClassVar[int]
    transactional_id: str
    def __init__(self, transactional_id: _Optional[str] = ...) -> None: ...

class AbortTransactionReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
