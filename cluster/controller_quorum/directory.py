"""The 16 random bytes that name a cluster or a data directory, as text and back."""

from __future__ import annotations

import base64
from typing import Final

from suiro.model.errors import InvalidRequest

ID_BYTES: Final = 16
ID_LENGTH: Final = 22


def id_text(raw: bytes) -> str:
    """16 bytes as 22 characters that fit into URLs, file names and command lines."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def id_bytes(text: str) -> bytes:
    """The other way; InvalidRequest for what is no such text."""
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        raw = b""
    if len(raw) != ID_BYTES or id_text(raw) != text:
        raise InvalidRequest(f"'{text}' is no id: it must be {ID_LENGTH} characters of base64")
    return raw
