"""Every public name has an example, and every example does what it says, against a real node.

The examples are those of docs/api.md: `producer`, `consumer`, `admin` are open clients, and there
is a topic `fruit` of two records. All run on one node, so each has its topics, groups and
transactions under names of its own: `"fruit"` becomes `"fruit-17"`, in the code and in what it
prints.
"""

from __future__ import annotations

import asyncio
import doctest
import inspect
import io
import re
from ast import PyCF_ALLOW_TOP_LEVEL_AWAIT
from contextlib import ExitStack, redirect_stdout
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import suiro
from suiro import aio, errors, testing
from suiro.loop_thread import new_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType, ModuleType

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("docstrings")]

INSIDE = "Inside the SDK: "
"""Methods that begin so are for other modules of the SDK, and are not in the reference."""

NAMES = re.compile(
    r"(?P<quote>['\"])(?P<name>fruit|orders|clicks|payments|shipping|eaten|news|greetings|letters"
    r"|billing|eating|query-1)(?P=quote)"
)
HARMFUL = [
    f"suiro.testing.Cluster.{name}"
    for name in ("kill", "restart", "pause", "resume", "partition", "heal")
]
"""What these examples do to a cluster, they do to one of their own."""

READING = {"auto_offset_reset": "earliest", "enable_auto_commit": False}
CLIENTS: dict[str, Callable[[Any, str], Any]] = {
    "producer": lambda package, _group: package.Producer(),
    "consumer": lambda package, group: package.Consumer(group_id=group, **READING),
    "admin": lambda package, _group: package.Admin(),
}
"""What an example finds open, if it asks for it."""


class Documented(NamedTuple):
    """A public name and what its docstring says."""

    path: str
    module: ModuleType
    text: str


def public_names() -> Iterator[Documented]:
    for module in (suiro, aio, testing):
        for name in sorted(module.__all__):
            found = getattr(module, name)
            is_seen = module is aio and getattr(suiro, name, None) is found
            if inspect.isclass(found) and not is_seen:
                path = f"{module.__name__}.{name}"
                yield Documented(path, module, inspect.getdoc(found) or "")
                yield from _methods(path, module, found)


def _methods(path: str, module: ModuleType, found: type) -> Iterator[Documented]:
    for name, item in vars(found).items():
        inner = item.fget if isinstance(item, property) else getattr(item, "__func__", item)
        if not name.startswith("_") and inspect.isfunction(inner):
            text = inspect.getdoc(inner) or ""
            if not text.startswith(INSIDE):
                yield Documented(f"{path}.{name}", module, text)


NAMED = list(public_names())


def test_every_public_name_has_an_example() -> None:
    assert [each.path for each in NAMED if ">>> " not in each.text] == []


def test_every_error_says_what_it_means() -> None:
    kinds = [kind for kind in vars(errors).values() if inspect.isclass(kind)]
    tree = [kind for kind in kinds if issubclass(kind, suiro.SuiroError)]
    assert len(tree) > 50
    assert [kind.__name__ for kind in tree if not kind.__doc__] == []


@pytest.fixture(scope="module")
def runner() -> asyncio.Runner:
    """For all examples, and never closed: gRPC's poller stumbles over loops that were."""
    return asyncio.Runner(loop_factory=new_loop)


@pytest.fixture
def cluster(
    request: pytest.FixtureRequest, suiro_shared_cluster: testing.Cluster
) -> Iterator[testing.Cluster]:
    """The node of all examples, or one that an example may harm."""
    if request.node.callspec.id not in HARMFUL:
        yield suiro_shared_cluster
        return
    with testing.Cluster() as own:
        yield own


@pytest.mark.parametrize("number", range(len(NAMED)), ids=[each.path for each in NAMED])
def test_the_example_does_what_it_says(
    number: int,
    cluster: testing.Cluster,
    runner: asyncio.Runner,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, module, text = NAMED[number]
    monkeypatch.setenv("SUIRO", cluster.bootstrap)
    if "fruit" in text:
        with cluster.producer() as producer:
            values, keys = [b"apple", b"banana"], [b"a", b"b"]
            producer.send_many(f"fruit-{number}", values, keys=keys).wait(30)
    given = {"suiro": suiro, "aio": aio, "Cluster": testing.Cluster, "cluster": cluster}
    examples = doctest.DocTestParser().get_examples(_renamed(text, number))
    with ExitStack() as at_the_end:
        for name, make in CLIENTS.items():
            if re.search(rf"\b{name}\.|\({name}\b", text):
                given[name] = client = make(aio if module is aio else suiro, f"readers-{number}")
                if module is aio:
                    runner.run(client.__aenter__())
                    at_the_end.callback(_close, client, runner)
                else:
                    at_the_end.callback(client.close)
        for example in examples:
            _run(example, given, runner if module is aio else None)


def _close(client: Any, runner: asyncio.Runner) -> None:
    runner.run(client.close())


def _renamed(text: str, number: int) -> str:
    return NAMES.sub(rf"\g<quote>\g<name>-{number}\g<quote>", text)


def _run(example: doctest.Example, given: dict[str, Any], runner: asyncio.Runner | None) -> None:
    """As doctest does it, but on a loop if there is one: then an example may await."""
    code = compile(example.source, "<example>", "single", PyCF_ALLOW_TOP_LEVEL_AWAIT)
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            if runner is None:
                eval(code, given)
            else:
                runner.run(_evaluate(code, given))
    except suiro.SuiroError as error:
        kind = type(error)
        got, want = f"{kind.__module__}.{kind.__qualname__}: {error}\n", example.exc_msg
    else:
        got, want = printed.getvalue(), example.want
    checker = doctest.OutputChecker()
    is_right = want is not None and checker.check_output(want, got, doctest.ELLIPSIS)
    assert is_right, f"{example.source}is said to give\n{want}\nand gives\n{got}"


async def _evaluate(code: CodeType, given: dict[str, Any]) -> None:
    done = eval(code, given)
    if inspect.isawaitable(done):
        await done
