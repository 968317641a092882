"""What a call is, without saying how it travels: `Method`, `Transport`, `Stream`, `Route`.

gRPC is one implementation; the simulator's in-memory network is the other. Services and clients
know only this page. Every streaming method looks the same from both ends: a `Stream` that sends and
receives; a stream that only one side feeds simply finishes early on the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from suiro.model.ids import Address

Q = TypeVar("Q")
R = TypeVar("R")
Out = TypeVar("Out", contravariant=True)  # noqa: PLC0105 - Out and In read better
In = TypeVar("In", covariant=True)  # noqa: PLC0105


class Kind(Enum):
    """Who may send more than one message."""

    UNARY = "unary"
    SERVER_STREAM = "server stream"
    BIDIRECTIONAL = "bidirectional"


@dataclass(frozen=True, slots=True)
class Codec(Generic[Q]):
    """Messages of one type to bytes and back."""

    encode: Callable[[Q], bytes]
    decode: Callable[[bytes], Q]


@dataclass(frozen=True, slots=True, eq=False)
class Method(Generic[Q, R]):
    """One rpc: `name` is its full gRPC path, `/suiro.v1.Broker/Produce`."""

    name: str
    kind: Kind
    request: Codec[Q]
    reply: Codec[R]

    def __str__(self) -> str:
        return self.name


class Stream(Protocol[Out, In]):
    """One end of an open stream. One task may send while another receives."""

    async def send(self, message: Out) -> None:
        """Wait until the transport has taken it; raises SuiroError once the stream broke."""

    async def receive(self) -> In | None:
        """The next message, or None when the other side has finished; raises if it failed."""

    async def finish(self) -> None:
        """Say that no more will be sent. (A server finishes by returning from its handler.)"""

    def cancel(self) -> None:
        """Drop the stream at once; the other side sees it break."""


class Transport(Protocol):
    """The calling side. Connections are made as needed and shared."""

    async def call(
        self, address: Address, method: Method[Q, R], request: Q, *, timeout_s: float
    ) -> R:
        """One request, one reply; raises the other side's SuiroError, Unavailable or TimedOut."""

    async def open(self, address: Address, method: Method[Q, R]) -> Stream[Q, R]:
        """Open a stream; for a server stream, send the one request and finish."""

    async def refuses(self, address: Address, *, timeout_s: float) -> bool:
        """Whether nobody listens there, as the machine itself says: no answer is not a refusal."""

    async def close(self) -> None:
        """Close every connection; open streams break."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is calling, as far as the transport knows."""

    address: str
    principal: str = "anonymous"
    client_id: str = ""

    @property
    def host(self) -> str:
        """The machine alone: `ipv4:10.0.0.7:4711` is at 10.0.0.7."""
        kind, _, rest = self.address.partition(":")
        if kind in {"ipv4", "ipv6"}:
            rest = unquote(rest).rpartition(":")[0].strip("[]")
        return rest or self.address


@dataclass(frozen=True, slots=True)
class Route:
    """One method and the code that serves it: a unary handler or a stream handler by its kind."""

    method: Method[Any, Any]
    handler: Callable[[Any, Peer], Awaitable[Any]]


class Service(Protocol):
    """What a server can host."""

    def routes(self) -> list[Route]: ...
