from suiro._proto import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RaftEnvelope(_message.Message):
    __slots__ = ("hello", "directory_id", "messages")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    hello: _common_pb2.Hello
    directory_id: bytes
    messages: _containers.RepeatedCompositeFieldContainer[RaftMessage]
    def __init__(self, hello: _Optional[_Union[_common_pb2.Hello, _Mapping]] = ..., directory_id: _Optional[bytes] = ..., messages: _Optional[_Iterable[_Union[RaftMessage, _Mapping]]] = ...) -> None: ...

class RaftWelcome(_message.Message):
    __slots__ = ("hello", "directory_id")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    hello: _common_pb2.HelloReply
    directory_id: bytes
    def __init__(self, hello: _Optional[_Union[_common_pb2.HelloReply, _Mapping]] = ..., directory_id: _Optional[bytes] = ...) -> None: ...

class RaftMessage(_message.Message):
    __slots__ = ("kind", "to", "term", "index", "log_term", "commit", "reject", "hint_index", "hint_term", "context", "entries", "snapshot", "directory_id", "to_directory_id", "force")
    KIND_FIELD_NUMBER: _ClassVar[int]
    FROM_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    LOG_TERM_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    REJECT_FIELD_NUMBER: _ClassVar[int]
    HINT_INDEX_FIELD_NUMBER: _ClassVar[int]
    HINT_TERM_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    TO_DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    kind: int
    to: int
    term: int
    index: int
    log_term: int
    commit: int
    reject: bool
    hint_index: int
    hint_term: int
    context: bytes
    entries: _containers.RepeatedCompositeFieldContainer[RaftEntry]
    snapshot: RaftSnapshotChunk
    directory_id: bytes
    to_directory_id: bytes
    force: bool
    def __init__(self, kind: _Optional[int] = ..., to: _Optional[int] = ..., term: _Optional[int] = ..., index: _Optional[int] = ..., log_term: _Optional[int] = ..., commit: _Optional[int] = ..., reject: _Optional[bool] = ..., hint_index: _Optional[int] = ..., hint_term: _Optional[int] = ..., context: _Optional[bytes] = ..., entries: _Optional[_Iterable[_Union[RaftEntry, _Mapping]]] = ..., snapshot: _Optional[_Union[RaftSnapshotChunk, _Mapping]] = ..., directory_id: _Optional[bytes] = ..., to_directory_id: _Optional[bytes] = ..., force: _Optional[bool] = ..., **kwargs) -> None: ...

class RaftEntry(_message.Message):
    __slots__ = ("term", "index", "kind", "data")
    TERM_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    term: int
    index: int
    kind: int
    data: bytes
    def __init__(self, term: _Optional[int] = ..., index: _Optional[int] = ..., kind: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class RaftSnapshotChunk(_message.Message):
    __slots__ = ("index", "term", "members", "offset", "done", "data")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    index: int
    term: int
    members: RaftMembers
    offset: int
    done: bool
    data: bytes
    def __init__(self, index: _Optional[int] = ..., term: _Optional[int] = ..., members: _Optional[_Union[RaftMembers, _Mapping]] = ..., offset: _Optional[int] = ..., done: _Optional[bool] = ..., data: _Optional[bytes] = ...) -> None: ...

class RaftMembers(_message.Message):
    __slots__ = ("voters", "learners")
    VOTERS_FIELD_NUMBER: _ClassVar[int]
    LEARNERS_FIELD_NUMBER: _ClassVar[int]
    voters: _containers.RepeatedCompositeFieldContainer[RaftMember]
    learners: _containers.RepeatedCompositeFieldContainer[RaftMember]
    def __init__(self, voters: _Optional[_Iterable[_Union[RaftMember, _Mapping]]] = ..., learners: _Optional[_Iterable[_Union[RaftMember, _Mapping]]] = ...) -> None: ...

class RaftMember(_message.Message):
    __slots__ = ("node_id", "directory_id", "host", "port")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    node_id: int
    directory_id: bytes
    host: str
    port: int
    def __init__(self, node_id: _Optional[int] = ..., directory_id: _Optional[bytes] = ..., host: _Optional[str] = ..., port: _Optional[int] = ...) -> None: ...
