"""Values that are Protobuf messages, of a type in a descriptor set.

The set is what `protoc --include_imports --descriptor_set_out=FILE` writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.message import DecodeError
from suiro.model.errors import InvalidSetting

from pyspark_suiro.errors import SchemaMismatch

if TYPE_CHECKING:
    from google.protobuf.message import Message

    Descriptor = Any
    """Of a message, or of a field: the stubs know them by two names."""

SCALARS: Final = {
    Field.CPPTYPE_BOOL: "BOOLEAN",
    Field.CPPTYPE_INT32: "INT",
    Field.CPPTYPE_UINT32: "BIGINT",
    Field.CPPTYPE_INT64: "BIGINT",
    Field.CPPTYPE_UINT64: "DECIMAL(20, 0)",
    Field.CPPTYPE_FLOAT: "FLOAT",
    Field.CPPTYPE_DOUBLE: "DOUBLE",
    Field.CPPTYPE_STRING: "STRING",
    Field.CPPTYPE_ENUM: "STRING",
}
TIMESTAMP: Final = "google.protobuf.Timestamp"
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass
class ProtobufValues:
    """A decoder that can be pickled."""

    descriptors: bytes
    name: str

    @classmethod
    def of_file(cls, path: str, name: str) -> ProtobufValues:
        """Read on the driver; the tasks get what was read."""
        if not path or not name:
            raise InvalidSetting(
                "with valueFormat 'protobuf', valueDescriptor is the file that `protoc "
                "--include_imports --descriptor_set_out` wrote, and valueSchema the message's name"
            )
        try:
            return cls(Path(path).read_bytes(), name)
        except OSError as error:
            raise InvalidSetting(f"valueDescriptor cannot be read on the driver: {error}") from None

    def fields_ddl(self) -> str:
        """What Spark reads, field by field."""
        return _fields(self._message.DESCRIPTOR, ())

    def decode(self, value: bytes) -> dict[str, Any]:
        return _fields_of(self._message.FromString(value))

    @cached_property
    def _message(self) -> type[Message]:
        pool = descriptor_pool.DescriptorPool()
        try:
            for file in descriptor_pb2.FileDescriptorSet.FromString(self.descriptors).file:
                pool.AddSerializedFile(file.SerializeToString())
            return message_factory.GetMessageClass(pool.FindMessageTypeByName(self.name))
        except KeyError:
            raise InvalidSetting(
                f"valueDescriptor has no message '{self.name}' (valueSchema must be its full name, "
                "with the package)"
            ) from None
        except (TypeError, DecodeError) as error:
            raise InvalidSetting(f"valueDescriptor is no whole descriptor set: {error}") from None

    def __getstate__(self) -> dict[str, Any]:
        return {"descriptors": self.descriptors, "name": self.name}


def _fields(message: Descriptor, around: tuple[str, ...]) -> str:
    if message.full_name in around:
        raise SchemaMismatch(f"message {message.full_name} holds itself: Spark has no such type")
    inside = (*around, message.full_name)
    return ", ".join(f"`{field.name}` {_type(field, inside)}" for field in message.fields)


def _type(field: Descriptor, around: tuple[str, ...]) -> str:
    inner = field.message_type
    if inner is None:
        is_bytes = field.type == Field.TYPE_BYTES
        kind = "BINARY" if is_bytes else SCALARS[field.cpp_type]
    elif inner.full_name == TIMESTAMP:
        kind = "TIMESTAMP"
    elif inner.GetOptions().map_entry:
        raise SchemaMismatch(f"map field '{field.full_name}' cannot be read with valueFormat")
    else:
        kind = f"STRUCT<{_fields(inner, around)}>"
    return f"ARRAY<{kind}>" if field.is_repeated else kind


def _fields_of(message: Message) -> dict[str, Any]:
    return {field.name: _value(message, field) for field in message.DESCRIPTOR.fields}


def _value(message: Message, field: Descriptor) -> Any:
    if field.is_repeated:
        return [_plain(each, field) for each in getattr(message, field.name)]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _plain(getattr(message, field.name), field)


def _plain(value: Any, field: Descriptor) -> Any:
    if field.message_type is not None:
        if field.message_type.full_name == TIMESTAMP:
            return EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
        return _fields_of(value)
    if field.cpp_type == Field.CPPTYPE_ENUM:
        known = field.enum_type.values_by_number.get(value)
        return str(value) if known is None else known.name
    return Decimal(value) if field.cpp_type == Field.CPPTYPE_UINT64 else value
