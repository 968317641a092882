from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class DescribeNodeRequest(_message.Message):
    __slots__ = ("with_metrics",)
    WITH_METRICS_FIELD_NUMBER: _ClassVar[int]
    with_metrics: bool
    def __init__(self, with_metrics: _Optional[bool] = ...) -> None: ...

class DescribeNodeReply(_message.Message):
    __slots__ = ("cluster_id", "node_id", "roles", "software", "now_ms", "uptime_ms", "ready", "metrics")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    SOFTWARE_FIELD_NUMBER: _ClassVar[int]
    NOW_MS_FIELD_NUMBER: _ClassVar[int]
    UPTIME_MS_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    node_id: int
    roles: _containers.RepeatedScalarFieldContainer[str]
    software: str
    now_ms: int
    uptime_ms: int
    ready: bool
    metrics: bytes
    def __init__(self, cluster_id: _Optional[str] = ..., node_id: _Optional[int] = ..., roles: _Optional[_Iterable[str]] = ..., software: _Optional[str] = ..., now_ms: _Optional[int] = ..., uptime_ms: _Optional[int] = ..., ready: _Optional[bool] = ..., metrics: _Optional[bytes] = ...) -> None: ...
