"""What a command prints for a program: `-o json` and `-o yaml`, from the same plain data.

The shape of the data is part of a command's contract: keys are only added.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

Output = Annotated[
    Literal["table", "json", "yaml"], typer.Option("--output", "-o", help="How to print it.")
]


RESERVED: Final = frozenset(["true", "false", "null", "yes", "no", "on", "off", "y", "n"])
"""Words that are no text to YAML."""


def printed(output: str, data: object) -> bool:
    """Print the data if a program asked for it; False says that a person did."""
    if output == "table":
        return False
    plain = plain_data(data)
    typer.echo(json.dumps(plain, indent=1) if output == "json" else "\n".join(yaml_lines(plain)))
    return True


def plain_data(value: object) -> Any:
    """Dataclasses as dictionaries, tuples as lists, and what is a name as text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain_data(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain_data(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        value = sorted(value)
    if isinstance(value, list | tuple):
        return [plain_data(item) for item in value]
    return _scalar(value)


def _scalar(value: object) -> bool | int | float | str | None:
    if isinstance(value, Enum):
        return value.name.lower()
    if isinstance(value, bytes):
        return value.hex()
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def yaml_lines(value: Any, indent: str = "") -> Iterator[str]:
    """Block style; every text is quoted as JSON does, which YAML reads as the same text."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _entry(f"{indent}{_key(key)}:", item, indent)
    elif isinstance(value, list) and value:
        for item in value:
            yield from _item(item, indent)
    else:
        yield indent + _yaml_scalar(value)


def _entry(head: str, item: Any, indent: str) -> Iterator[str]:
    if isinstance(item, dict | list) and item:
        yield head
        yield from yaml_lines(item, indent + "  ")
    else:
        yield f"{head} {_yaml_scalar(item)}"


def _item(item: Any, indent: str) -> Iterator[str]:
    """The first line of what is in the list goes behind the dash."""
    lines = list(yaml_lines(item, indent + "  "))
    yield f"{indent}- {lines[0].lstrip()}"
    yield from lines[1:]


def _key(key: str) -> str:
    is_plain = re.fullmatch("[a-z][a-z0-9_]*", key) and key not in RESERVED
    return key if is_plain else _yaml_scalar(key)


def _yaml_scalar(value: Any) -> str:
    """As JSON; only what is above 16 bits is written otherwise there."""
    if not isinstance(value, str):
        return json.dumps(value)
    parts = (f"\\U{ord(c):08x}" if ord(c) > 0xFFFF else json.dumps(c)[1:-1] for c in value)
    return f'"{"".join(parts)}"'
