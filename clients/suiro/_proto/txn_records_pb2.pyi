from suiro._proto import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TxnValue(_message.Message):
    __slots__ = ("state", "changed_ms", "timeout_ms", "identity", "holder", "came_from", "client", "fenced_by", "fenced_ms", "opened_ms", "renewed_ms", "writers", "ended", "token", "committed_sequence", "over")
    STATE_FIELD_NUMBER: _ClassVar[int]
    CHANGED_MS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    CAME_FROM_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    FENCED_BY_FIELD_NUMBER: _ClassVar[int]
    FENCED_MS_FIELD_NUMBER: _ClassVar[int]
    OPENED_MS_FIELD_NUMBER: _ClassVar[int]
    RENEWED_MS_FIELD_NUMBER: _ClassVar[int]
    WRITERS_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    OVER_FIELD_NUMBER: _ClassVar[int]
    state: str
    changed_ms: int
    timeout_ms: int
    identity: TxnIdentity
    holder: TxnIdentity
    came_from: TxnIdentity
    client: str
    fenced_by: str
    fenced_ms: int
    opened_ms: int
    renewed_ms: int
    writers: _containers.RepeatedCompositeFieldContainer[TxnWriter]
    ended: TxnEnded
    token: TxnToken
    committed_sequence: int
    over: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, state: _Optional[str] = ..., changed_ms: _Optional[int] = ..., timeout_ms: _Optional[int] = ..., identity: _Optional[_Union[TxnIdentity, _Mapping]] = ..., holder: _Optional[_Union[TxnIdentity, _Mapping]] = ..., came_from: _Optional[_Union[TxnIdentity, _Mapping]] = ..., client: _Optional[str] = ..., fenced_by: _Optional[str] = ..., fenced_ms: _Optional[int] = ..., opened_ms: _Optional[int] = ..., renewed_ms: _Optional[int] = ..., writers: _Optional[_Iterable[_Union[TxnWriter, _Mapping]]] = ..., ended: _Optional[_Union[TxnEnded, _Mapping]] = ..., token: _Optional[_Union[TxnToken, _Mapping]] = ..., committed_sequence: _Optional[int] = ..., over: _Optional[_Iterable[str]] = ...) -> None: ...

class TxnIdentity(_message.Message):
    __slots__ = ("producer_id", "producer_epoch")
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    producer_id: int
    producer_epoch: int
    def __init__(self, producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ...) -> None: ...

class TxnWriter(_message.Message):
    __slots__ = ("identity", "partitions", "groups", "name", "prepared", "commits")
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PREPARED_FIELD_NUMBER: _ClassVar[int]
    COMMITS_FIELD_NUMBER: _ClassVar[int]
    identity: TxnIdentity
    partitions: _containers.RepeatedCompositeFieldContainer[_common_pb2.TopicPartition]
    groups: _containers.RepeatedScalarFieldContainer[str]
    name: str
    prepared: bool
    commits: bool
    def __init__(self, identity: _Optional[_Union[TxnIdentity, _Mapping]] = ..., partitions: _Optional[_Iterable[_Union[_common_pb2.TopicPartition, _Mapping]]] = ..., groups: _Optional[_Iterable[str]] = ..., name: _Optional[str] = ..., prepared: _Optional[bool] = ..., commits: _Optional[bool] = ...) -> None: ...

class TxnEnded(_message.Message):
    __slots__ = ("identity", "successor", "commit", "by", "who", "at_ms")
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    SUCCESSOR_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    WHO_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    identity: TxnIdentity
    successor: TxnIdentity
    commit: bool
    by: int
    who: str
    at_ms: int
    def __init__(self, identity: _Optional[_Union[TxnIdentity, _Mapping]] = ..., successor: _Optional[_Union[TxnIdentity, _Mapping]] = ..., commit: _Optional[bool] = ..., by: _Optional[int] = ..., who: _Optional[str] = ..., at_ms: _Optional[int] = ...) -> None: ...

class TxnToken(_message.Message):
    __slots__ = ("sequence", "attempt")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    attempt: str
    def __init__(self, sequence: _Optional[int] = ..., attempt: _Optional[str] = ...) -> None: ...
