"""Metadata records to bytes and back: the classes of `records` as messages of records.proto.

A class and its message have the same name and the same field names; how to convert is worked out
from the types of the class once, when this module is imported, which also checks that the two sides
agree. A kind of record that this version does not know is refused, never skipped: a node that
skipped it would hold another state than its peers.

Speed matters here: a snapshot of a large cluster is 100,000 of these. So each class gets two
functions that read as if written by hand, and the envelope around a record is put on as bytes.
"""

from __future__ import annotations

import dataclasses
from enum import Enum
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from google.protobuf.message import DecodeError

from suiro._proto import records_pb2
from suiro.model.errors import CorruptBatch, UnsupportedVersion
from suiro.model.records import MetadataRecord

if TYPE_CHECKING:
    from collections.abc import Callable

_Envelope = records_pb2.MetadataRecord
_ONEOF = "record"
_LENGTH_DELIMITED = 2  # protobuf's wire type of a message inside a message


def encode(record: MetadataRecord) -> bytes:
    """One record as a serialized MetadataRecord; equal records give equal bytes."""
    tag, to_message = _BY_CLASS[type(record)]
    body = to_message(record).SerializeToString(deterministic=True)
    return b"".join((tag, _varint(len(body)), body))


def decode(data: bytes) -> MetadataRecord:
    """The record in `data`; raises UnsupportedVersion for what a later version has written."""
    try:
        envelope = _Envelope.FromString(data)
    except DecodeError:
        raise CorruptBatch(f"{len(data)} bytes are not a metadata record") from None
    name = envelope.WhichOneof(_ONEOF)
    if name is None:
        raise UnsupportedVersion("a metadata record of a kind that this version does not know")
    try:
        record: MetadataRecord = _BY_NAME[name](getattr(envelope, name))
    except KeyError as error:
        raise UnsupportedVersion(f"{name}: {error} is not known to this version") from None
    return record


class _Converter:
    """A dataclass and its message: `to_message` and `from_message`, each a single expression.

    The expressions are built as text, as `dataclasses` builds `__init__`: a loop over the fields
    at run time is twice as slow.
    """

    __slots__ = ("from_message", "to_message")

    def __init__(self, cls: type, message: Any) -> None:
        hints = get_type_hints(cls)
        names = [field.name for field in dataclasses.fields(cls)]
        theirs = set(message.DESCRIPTOR.fields_by_name)
        assert set(names) == theirs, f"{cls.__name__} and its message differ: {names} {theirs}"
        scope: dict[str, Any] = {"cls": cls, "message": message, **_nested(hints, message)}
        there = ", ".join(f"{name}={_to_wire(name, hints[name])}" for name in names)
        back = ", ".join(_from_wire(name, hints[name]) for name in names)
        self.to_message: Callable[[Any], Any] = eval(f"lambda r: message({there})", scope)
        self.from_message: Callable[[Any], Any] = eval(f"lambda m: cls({back})", scope)


def _to_wire(name: str, kind: Any) -> str:
    """How the field of record `r` is passed to its message; None leaves it out."""
    kind, optional = _without_none(kind)
    if dataclasses.is_dataclass(kind):
        return f"to_{name}(r.{name})" + (f" if r.{name} is not None else None" if optional else "")
    return f"r.{name} or None" if get_origin(kind) is tuple or _is_enum(kind) else f"r.{name}"


def _from_wire(name: str, kind: Any) -> str:
    """How the field is read from message `m`. A slice copies a repeated field at once."""
    kind, optional = _without_none(kind)
    if optional:
        return f"{_from_wire(name, kind)} if m.HasField('{name}') else None"
    if dataclasses.is_dataclass(kind):
        return f"from_{name}(m.{name})"
    if get_origin(kind) is tuple:
        item = get_args(kind)[0]
        return (
            f"tuple([enum_{name}[v] for v in m.{name}])"
            if _is_enum(item)
            else f"tuple(m.{name}[:])"
        )
    return f"enum_{name}[m.{name}]" if _is_enum(kind) else f"m.{name}"


def _nested(hints: dict[str, Any], message: Any) -> dict[str, Any]:
    """What the expressions of a class need by name: its enumerations, its inner classes."""
    scope: dict[str, Any] = {}
    for name, hint in hints.items():
        kind, _ = _without_none(hint)
        item = get_args(kind)[0] if get_origin(kind) is tuple else kind
        if _is_enum(item):
            scope[f"enum_{name}"] = {member.value: member for member in item}
        elif dataclasses.is_dataclass(item) and isinstance(item, type):
            inner = _Converter(item, _message_class(message.DESCRIPTOR.fields_by_name[name]))
            scope[f"to_{name}"], scope[f"from_{name}"] = inner.to_message, inner.from_message
    return scope


def _without_none(kind: Any) -> tuple[Any, bool]:
    """The type of a field, and whether it may also be None."""
    parts = get_args(kind)
    if NoneType not in parts:
        return kind, False
    (inner,) = (part for part in parts if part is not NoneType)
    return inner, True


def _is_enum(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Enum)


def _message_class(field: Any) -> Any:
    return getattr(records_pb2, field.message_type.name)


def _record_converter(cls: type, message: Any) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """As `_Converter`, but a record that only wraps one thing is stored as that thing."""
    fields = dataclasses.fields(cls)
    if message.__name__ == cls.__name__:
        converter = _Converter(cls, message)
        return converter.to_message, converter.from_message
    (wrapped,) = fields
    inner = _Converter(get_type_hints(cls)[wrapped.name], message)
    unwrap: Callable[[Any], Any] = eval(
        f"lambda r: to_message(r.{wrapped.name})", {"to_message": inner.to_message}
    )
    return unwrap, lambda m: cls(inner.from_message(m))


def _varint(number: int) -> bytes:
    if number < 0x80:
        return _SMALL[number]
    parts = bytearray()
    while number >= 0x80:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).removeprefix("_")


_SMALL = [bytes((number,)) for number in range(0x80)]
_BY_CLASS: dict[type, tuple[bytes, Callable[[Any], Any]]] = {}
_BY_NAME: dict[str, Callable[[Any], Any]] = {}
for _class in get_args(MetadataRecord):
    _field = _Envelope.DESCRIPTOR.fields_by_name[_snake(_class.__name__)]
    _to_message, _from_message = _record_converter(_class, _message_class(_field))
    _BY_CLASS[_class] = (_varint(_field.number << 3 | _LENGTH_DELIMITED), _to_message)
    _BY_NAME[_field.name] = _from_message
assert _BY_NAME.keys() == set(_Envelope.DESCRIPTOR.fields_by_name), "a message without a class"
