"""From a code back to its class: how an error that travelled is raised again on the other side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suiro.model.error_base import ErrorCode, SuiroError
from suiro.model.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Mapping


def error_from_wire(code: int, message: str, hints: Mapping[str, str]) -> SuiroError:
    """The error that the other side raised; a code from the future becomes an InternalError."""
    kind = _BY_CODE.get(code)
    if kind is None:
        return InternalError(f"unknown error code {code}: {message}")
    error = kind.__new__(kind)
    SuiroError.__init__(error, message, **hints)
    return error


def error_classes() -> tuple[type[SuiroError], ...]:
    """Every error class, by code; `suiro errors` prints them."""
    return tuple(_BY_CODE[code] for code in sorted(_BY_CODE))


def _all_subclasses(root: type[SuiroError]) -> list[type[SuiroError]]:
    found = []
    for child in root.__subclasses__():
        found += [child, *_all_subclasses(child)]
    return found


_BY_CODE: dict[int, type[SuiroError]] = {kind.code: kind for kind in _all_subclasses(SuiroError)}
assert len(_BY_CODE) == len(_all_subclasses(SuiroError)), "two errors share a code"
assert _BY_CODE.keys() == set(ErrorCode) - {ErrorCode.OK}, "a code has no class"
