"""Which request something belongs to: an id that goes with it through every service.

The id is the trace id of a W3C `traceparent`, the header that tracing systems understand. A client
that has none makes one for each call; a node that serves a call makes its own calls under the same
id, and its log names it. Streams carry the id of whoever opened them; messages on a stream cost
nothing.
"""

from __future__ import annotations

import re
import secrets
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    Metadata = tuple[tuple[str, str], ...]

TRACE_KEY: Final = "traceparent"
_FORM: Final = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_current: Final = ContextVar("suiro-trace", default="")


def current() -> str:
    """The `traceparent` of the request that this task works for, or nothing."""
    return _current.get()


def current_id() -> str:
    """Its trace id alone: what people look for in logs."""
    return _current.get()[3:35]


def work_for(parent: str) -> None:
    """From now on this task works for that request; for none if it is empty or malformed."""
    _current.set(parent if _FORM.fullmatch(parent) else "")


def new_parent() -> str:
    """Of a request that begins here."""
    return f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01"


def forwarded() -> Metadata | None:
    """What a node's call carries: the request that it is made for, if it is made for one."""
    parent = _current.get()
    return ((TRACE_KEY, parent),) if parent else None


def begun() -> Metadata:
    """What a client's call carries: its caller's request, or a new one."""
    return ((TRACE_KEY, _current.get() or new_parent()),)


def parent_in(metadata: Iterable[tuple[str, str | bytes]] | None) -> str:
    """The request that a call came with."""
    for key, value in metadata or ():
        if key == TRACE_KEY and isinstance(value, str):
            return value
    return ""
