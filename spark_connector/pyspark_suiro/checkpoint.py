"""What the sink can learn from a query's checkpoint, where that is a directory of this machine."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any


def folder_of(checkpoint: str) -> Path | None:
    """None if it is not on this machine, or not said."""
    path = checkpoint.removeprefix("file://").removeprefix("file:")
    return Path(path) if path.startswith("/") else None


def query_of(checkpoint: str) -> str | None:
    """The id of the query whose checkpoint this is."""
    folder = folder_of(checkpoint)
    if folder is not None:
        with suppress(OSError, ValueError, KeyError):
            said: dict[str, Any] = json.loads((folder / "metadata").read_text())
            return str(said["id"])
    return None


def has_written(checkpoint: str) -> bool:
    """Whether a batch of the query is through."""
    folder = folder_of(checkpoint)
    return folder is not None and any((folder / "commits").glob("[0-9]*"))
