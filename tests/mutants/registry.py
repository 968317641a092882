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

    def compiled(self) -> CodeType:
        function = self._function()
        source = textwrap.dedent(inspect.getsource(function))
        found = source.count(self.before)
        assert found == 1, f"{function.__qualname__} has {self.before!r} {found} times"
        namespace: dict[str, Any] = {}
        code = compile(
            source.replace(self.before, self.after),
            f"<mutant of {function.__qualname__}>",
            "exec",
            flags=__future__.annotations.compiler_flag,
            dont_inherit=True,
        )
        exec(code, function.__globals__, namespace)
        mutant: FunctionType = namespace[function.__name__]
        return mutant.__code__

    def _function(self) -> FunctionType:
        assert inspect.isfunction(self.function)
        return self.function


@dataclass(frozen=True, slots=True)
class Mutant:
    """A bug, the promise that it breaks, and where it hides."""

    name: str
    breaks: str
    edits: tuple[Edit, ...]
    is_canary: bool = False
    """Changes nothing that matters: whoever catches it cries wolf."""

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Run the body with the bug in place."""
        changes = [(edit._function(), edit.compiled()) for edit in self.edits]
        originals = [(function, function.__code__) for function, _ in changes]
        try:
            for function, code in changes:
                function.__code__ = code
            yield
        finally:
            for function, code in originals:
                function.__code__ = code
