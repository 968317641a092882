"""Writes docs/api.md from the docstrings: `python docs/generate_api.py`, with `--check` to compare.

Every public name with its signature and its docstring; the examples in them are run by
tests/cluster/test_docstrings.py.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import suiro
from suiro import aio, testing

if TYPE_CHECKING:
    from collections.abc import Iterator

TARGET = Path(__file__).with_name("api.md")
HEAD = """# API

Made from the docstrings by `python docs/generate_api.py`. In the examples `producer`, `consumer` and
`admin` are open clients of a cluster that has a topic `fruit` of two records.
"""

INSIDE = "Inside the SDK: "
"""Methods that begin so are for other modules of the SDK, and nobody else's business."""


def main() -> None:
    page = "\n".join([HEAD, *_modules()])
    if "--check" not in sys.argv:
        TARGET.write_text(page)
    elif TARGET.read_text() != page:
        sys.exit("docs/api.md is not what the docstrings say: run `python docs/generate_api.py`")


def _modules() -> Iterator[str]:
    for module in (suiro, aio, testing):
        yield f"## {module.__name__}\n"
        yield f"{inspect.getdoc(module)}\n"
        for name in sorted(module.__all__):
            found = getattr(module, name)
            if inspect.isclass(found):
                yield from _class(f"{module.__name__}.{name}", found)


def _class(path: str, found: type) -> Iterator[str]:
    yield f"### {path}\n"
    yield _prose(found)
    for name, item in vars(found).items():
        inner = item.fget if isinstance(item, property) else item
        if name.startswith("_") or not inspect.isfunction(inner):
            continue
        if (inner.__doc__ or "").startswith(INSIDE):
            continue
        kind = "async " if inspect.iscoroutinefunction(inner) else ""
        signature = "" if isinstance(item, property) else _signature(inner)
        yield f"#### {kind}{path.rsplit('.', 1)[1]}.{name}{signature}\n"
        yield _prose(inner)


def _signature(function: Any) -> str:
    """Without `self` and annotations: those are in the code, for editors and type checkers."""
    signature = inspect.signature(function)
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for name, parameter in signature.parameters.items()
        if name != "self"
    ]
    empty = inspect.Signature.empty
    return f"`{signature.replace(parameters=parameters, return_annotation=empty)}`"


def _prose(item: Any) -> str:
    """The docstring, its examples set off as code."""
    lines: list[str] = []
    is_code = False
    for line in (inspect.getdoc(item) or "").splitlines():
        if line.startswith(">>>") and not is_code:
            lines.append("```pycon")
            is_code = True
        elif is_code and not line:
            lines.append("```")
            is_code = False
        lines.append(line)
    return "\n".join([*lines, *(["```"] if is_code else []), ""])


if __name__ == "__main__":
    main()
