"""Planted bugs: a test suite that has never caught one is only believed to work.

A mutant names a function and replaces a piece of its text. The text must be there exactly once, so
a mutant cannot silently become a no-op when the code moves on. Only the function's code object is
exchanged: whoever already holds the function runs the mutant too, and leaving the context restores
the original.
"""

from __future__ import annotations
import __future__

import inspect
import textwrap
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType, FunctionType
    from typing import Any


@dataclass(frozen=True, slots=True)
class Edit:
    """One replacement in the source of one function."""

    function: Callable[..., Any]
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Mutant:
    """A bug, the promise that it breaks, and where it hides."""

    name: str
    breaks: str
    edits: tuple[Edit, ...]
    """Several for a bug that one line of defence alone would stop."""

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Run the body with the bug in place."""
        functions = dict.fromkeys(_python_function(edit.function) for edit in self.edits)
        mutated = [(function, _compiled(function, self.edits)) for function in functions]
        originals = [(function, function.__code__) for function in functions]
        try:
            for function, code in mutated:
                function.__code__ = code
            yield
        finally:
            for function, code in originals:
                function.__code__ = code


def _python_function(function: Callable[..., Any]) -> FunctionType:
    assert inspect.isfunction(function)
    return function


def _compiled(function: FunctionType, edits: tuple[Edit, ...]) -> CodeType:
    """The function's code after all the edits that concern it."""
    source = textwrap.dedent(inspect.getsource(function))
    for edit in edits:
        if edit.function is function:
            found = source.count(edit.before)
            assert found == 1, f"{function.__qualname__} has {edit.before!r} {found} times"
            source = source.replace(edit.before, edit.after)
    namespace: dict[str, Any] = {}
    code = compile(
        source,
        f"<mutant of {function.__qualname__}>",
        "exec",
        flags=__future__.annotations.compiler_flag,
        dont_inherit=True,
    )
    exec(code, function.__globals__, namespace)
    mutant: FunctionType = namespace[function.__name__]
    return mutant.__code__
