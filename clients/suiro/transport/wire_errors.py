"""SuiroErrors to and from the contract's `Error` message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suiro._proto.common_pb2 import Error
from suiro.model.error_registry import error_from_wire

if TYPE_CHECKING:
    from suiro.model.error_base import SuiroError


def error_to_proto(error: SuiroError) -> Error:
    return Error(
        code=int(error.code),  # type: ignore[arg-type]
        message=error.message,
        hints={name: str(value) for name, value in error.hints.items()},
    )


def error_from_proto(error: Error) -> SuiroError:
    return error_from_wire(error.code, error.message, error.hints)


def raise_if_error(answer: Error) -> None:
    """Raise what an answer's `error` field says; an absent one has code OK."""
    if answer.code:
        raise error_from_proto(answer)
