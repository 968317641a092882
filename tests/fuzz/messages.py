"""Requests that nobody should send, drawn from the contract itself: every field of every message.

Fields get values from the edges: negative, huge, empty, unknown, of another epoch. Bytes are what
comes of such a message, or of it cut short, with bits turned over, or of chance alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor import FieldDescriptor

# The files of the contract register themselves when they are imported.
from suiro.transport import methods
from suiro.transport.api import Method

if TYPE_CHECKING:
    from random import Random

    from google.protobuf.message import Message

DEPTH_MAX: Final = 4
KINDS: Final = ("drawn", "cut", "flipped", "garbage", "replayed", "empty")
UNSIGNED = {
    FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED32,
    FieldDescriptor.TYPE_FIXED64,
}  # fmt: skip
WIDE = {FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64}


def all_methods() -> list[Method[Any, Any]]:
    """Every rpc of the contract."""
    services = [value for name, value in vars(methods).items() if name.endswith("Methods")]
    return [m for service in services for m in vars(service).values() if isinstance(m, Method)]


def request_class(method: Method[Any, Any]) -> type[Message]:
    service, name = method.name.strip("/").split("/")
    described = descriptor_pool.Default().FindServiceByName(service).FindMethodByName(name)
    return message_factory.GetMessageClass(described.input_type)


class Drawer:
    """Draws requests; `names` are topics and groups that exist."""

    def __init__(self, rng: Random, names: tuple[str, ...]) -> None:
        self._rng = rng
        self._names = names
        self._former: dict[str, bytes] = {}

    def draw(self, method: Method[Any, Any]) -> tuple[str, bytes]:
        """A kind, and the bytes."""
        rng = self._rng
        kind = rng.choice(KINDS)
        data = self._message(request_class(method), 0).SerializeToString()
        if kind == "cut" and data:
            data = data[: rng.randrange(len(data))]
        elif kind == "flipped" and data:
            flipped = bytearray(data)
            for _ in range(rng.randint(1, 4)):
                flipped[rng.randrange(len(flipped))] ^= 1 << rng.randrange(8)
            data = bytes(flipped)
        elif kind == "garbage":
            data = rng.randbytes(rng.choice((1, 7, 61, 500)))
        elif kind == "replayed":
            data = self._former.get(method.name, data)
        elif kind == "empty":
            data = b""
        self._former[method.name] = data
        return kind, data

    def _message(self, kind: type[Message], depth: int) -> Message:
        made = kind()
        for field in made.DESCRIPTOR.fields:
            if self._rng.random() < 0.25:
                continue
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                continue
            if field.is_repeated:
                values = [self._value(field, depth) for _ in range(self._rng.choice((0, 1, 1, 3)))]
                getattr(made, field.name).extend(v for v in values if v is not None)
            elif field.message_type is not None:
                if depth < DEPTH_MAX:
                    getattr(made, field.name).CopyFrom(self._value(field, depth))
            else:
                setattr(made, field.name, self._value(field, depth))
        return made

    def _value(self, field: Any, depth: int) -> Any:
        rng = self._rng
        match field.cpp_type:
            case FieldDescriptor.CPPTYPE_MESSAGE:
                if depth >= DEPTH_MAX:
                    return None
                return self._message(message_factory.GetMessageClass(field.message_type), depth + 1)
            case FieldDescriptor.CPPTYPE_STRING if field.type == FieldDescriptor.TYPE_STRING:
                return rng.choice((*self._names, "", "no-such", "x" * 300, "../up", "\x00", "é"))
            case FieldDescriptor.CPPTYPE_BOOL:
                return rng.random() < 0.5
            case FieldDescriptor.CPPTYPE_ENUM:
                return rng.choice([value.number for value in field.enum_type.values])
            case _:
                return self._number(field)

    def _number(self, field: Any) -> Any:
        rng = self._rng
        if field.type == FieldDescriptor.TYPE_BYTES:
            return rng.choice((b"", rng.randbytes(16), rng.randbytes(200)))
        if field.cpp_type in {FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT}:
            return rng.choice((0.0, -1.0, 1e30))
        bits = 63 if field.cpp_type in WIDE else 31
        edges = [0, 1, 2, 7, 1 << (bits - 1), (1 << bits) - 1]
        if field.type not in UNSIGNED:
            edges += [-1, -2, -(1 << bits)]
        return rng.choice(edges)
