from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Introduction(_message.Message):
    __slots__ = ("cluster_id", "node_id", "directory_id", "settled", "founders")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    SETTLED_FIELD_NUMBER: _ClassVar[int]
    FOUNDERS_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    node_id: int
    directory_id: bytes
    settled: bool
    founders: _containers.RepeatedCompositeFieldContainer[FoundingMember]
    def __init__(self, cluster_id: _Optional[str] = ..., node_id: _Optional[int] = ..., directory_id: _Optional[bytes] = ..., settled: _Optional[bool] = ..., founders: _Optional[_Iterable[_Union[FoundingMember, _Mapping]]] = ...) -> None: ...

class FoundingMember(_message.Message):
    __slots__ = ("node_id", "directory_id")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    node_id: int
    directory_id: bytes
    def __init__(self, node_id: _Optional[int] = ..., directory_id: _Optional[bytes] = ...) -> None: ...
