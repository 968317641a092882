from suiro._proto import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RaftEnvelope(_message.Message):
    __slots__ = ("hello", "directory_id", "address", "messages", "known")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    hello: _common_pb2.Hello
    directory_id: bytes
    address: _common_pb2.NodeAddress
    messages: _containers.RepeatedCompositeFieldContainer[RaftMessage]
    known: _containers.RepeatedCompositeFieldContainer[_common_pb2.NodeAddress]
    def __init__(self, hello: _Optional[_Union[_common_pb2.Hello, _Mapping]] = ..., directory_id: _Optional[bytes] = ..., address: _Optional[_Union[_common_pb2.NodeAddress, _Mapping]] = ..., messages: _Optional[_Iterable[_Union[RaftMessage, _Mapping]]] = ..., known: _Optional[_Iterable[_Union[_common_pb2.NodeAddress, _Mapping]]] = ...) -> None: ...

class RaftWelcome(_message.Message):
    __slots__ = ("hello", "directory_id")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    hello: _common_pb2.HelloReply
    directory_id: bytes
    def __init__(self, hello: _Optional[_Union[_common_pb2.HelloReply, _Mapping]] = ..., directory_id: _Optional[bytes] = ...) -> None: ...

class RaftMessage(_message.Message):
    __slots__ = ("kind", "term", "index", "log_term", "commit", "reject", "hint", "read_sequence", "context", "transfer", "entries", "snapshot")
    KIND_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    LOG_TERM_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    REJECT_FIELD_NUMBER: _ClassVar[int]
    HINT_FIELD_NUMBER: _ClassVar[int]
    READ_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    kind: int
    term: int
    index: int
    log_term: int
    commit: int
    reject: bool
    hint: int
    read_sequence: int
    context: bytes
    transfer: bool
    entries: _containers.RepeatedCompositeFieldContainer[RaftEntry]
    snapshot: RaftSnapshotChunk
    def __init__(self, kind: _Optional[int] = ..., term: _Optional[int] = ..., index: _Optional[int] = ..., log_term: _Optional[int] = ..., commit: _Optional[int] = ..., reject: _Optional[bool] = ..., hint: _Optional[int] = ..., read_sequence: _Optional[int] = ..., context: _Optional[bytes] = ..., transfer: _Optional[bool] = ..., entries: _Optional[_Iterable[_Union[RaftEntry, _Mapping]]] = ..., snapshot: _Optional[_Union[RaftSnapshotChunk, _Mapping]] = ...) -> None: ...

class RaftEntry(_message.Message):
    __slots__ = ("term", "kind", "data")
    TERM_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    term: int
    kind: int
    data: bytes
    def __init__(self, term: _Optional[int] = ..., kind: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class RaftSnapshotChunk(_message.Message):
    __slots__ = ("index", "term", "membership", "offset", "bytes_total", "data")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    MEMBERSHIP_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    BYTES_TOTAL_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    index: int
    term: int
    membership: bytes
    offset: int
    bytes_total: int
    data: bytes
    def __init__(self, index: _Optional[int] = ..., term: _Optional[int] = ..., membership: _Optional[bytes] = ..., offset: _Optional[int] = ..., bytes_total: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...
