"""`suiro why` and `suiro errors`: what is stuck, and what an error means."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated

import typer

from suiro.cli.common import VERDICT_NO, Bootstrap, print_table
from suiro.cli.output import Output, printed
from suiro.explain import explain_group, explain_partition, explain_transaction
from suiro.model import errors as error_tree
from suiro.model.error_base import ErrorCode, SuiroError
from suiro.model.errors import InvalidRequest, UnknownTopicOrPartition
from suiro.model.ids import TopicPartition
from suiro.wall_clock import wall_clock_ms

if TYPE_CHECKING:
    from collections.abc import Iterable

    from suiro.admin import Admin
    from suiro.cluster_view import ClusterView
    from suiro.explain import Explanation


def why(
    subject: Annotated[
        str,
        typer.Argument(help="orders/3, orders, group:billing or txn:copier-1; a bare name is any."),
    ],
    output: Output = "table",
    bootstrap: Bootstrap = None,
) -> None:
    """Explain what is stuck: a partition, a topic, a group, a transaction. Exit code 3 if it is.

    Example: suiro why orders/3
    """
    from suiro.admin import Admin

    with Admin(bootstrap) as admin:
        found = _Asker(admin).about(subject)
    if not printed(output, found):
        for each in found:
            _show(each)
    if any(each.stuck for each in found):
        raise typer.Exit(VERDICT_NO)


class _Asker:
    """Asks the cluster what the explanations need."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._view: ClusterView = admin.look()

    def about(self, subject: str) -> list[Explanation]:
        kind, colon, name = subject.partition(":")
        if colon and kind == "group":
            return [self._group(name)]
        if colon and kind == "txn":
            return [self._transaction(name)]
        topic, _, number = subject.partition("/")
        if topic in self._view.topics:
            return self._topic(topic, number)
        found = []
        if any(listed.group == subject for listed in self._admin.groups.list_groups()):
            found.append(self._group(subject))
        known = self._admin.transactions.list_transactions()
        if any(listed.transactional_id == subject for listed in known):
            found.append(self._transaction(subject))
        if not found:
            raise InvalidRequest(f"'{subject}' is no topic, no group and no transactional id")
        return found

    def _topic(self, topic: str, number: str) -> list[Explanation]:
        count = len(self._view.topics[topic].partitions)
        if number and not (number.isdecimal() and int(number) < count):
            raise UnknownTopicOrPartition(f"{topic} has the partitions 0 to {count - 1}")
        numbers = [int(number)] if number else range(count)
        return self._partitions(TopicPartition(topic, n) for n in numbers)

    def _partitions(self, names: Iterable[TopicPartition]) -> list[Explanation]:
        names = sorted(names)
        topics = {n.topic for n in names if self._is_led(n.topic)}
        held = self._admin.transactions.open_in_partitions(sorted(topics)) if topics else []
        return [
            explain_partition(self._view, name, [h for h in held if h.partition == name])
            for name in names
        ]

    def _is_led(self, topic: str) -> bool:
        """Only leaders know of transactions, and one that is missing would be waited for."""
        return all(info.leader is not None for info in self._view.topics[topic].partitions)

    def _stuck(self, names: Iterable[TopicPartition]) -> list[Explanation]:
        known = [name for name in names if name.topic in self._view.topics]
        return [each for each in self._partitions(known) if each.stuck] if known else []

    def _group(self, name: str) -> Explanation:
        info = self._admin.groups.describe_group(name)
        owned = {p for m in info.members for p in (*m.assigned, *m.revoking)}
        blocked = self._stuck({*owned, *self._admin.groups.group_offsets(name)})
        lags = [] if blocked else self._admin.groups.group_lag(info)
        return explain_group(info, lags, wall_clock_ms(), blocked)

    def _transaction(self, name: str) -> Explanation:
        info = self._admin.transactions.describe(name)
        return explain_transaction(info, wall_clock_ms(), self._stuck(info.partitions))


def _show(each: Explanation) -> None:
    typer.echo(f"{each.subject}: {each.state}")
    for cause in each.causes:
        typer.echo(f"  because {cause}")
    for advice in each.advice:
        typer.echo(f"  fix: {advice}")


def errors(
    code: Annotated[
        str | None, typer.Argument(help="NOT_LEADER, NotLeader or 34; else all of them.")
    ] = None,
    output: Output = "table",
) -> None:
    """Say what an error means, whether trying again can help, and what to do.

    Example: suiro errors NOT_ENOUGH_REPLICAS
    """
    known = sorted(_classes().values(), key=lambda kind: kind.code)
    if code is not None:
        wanted = code.replace("_", "").lower()
        known = [k for k in known if wanted in {str(int(k.code)), k.__name__.lower(), _flat(k)}]
        if not known:
            raise InvalidRequest(f"there is no error '{code}'; `suiro errors` lists them all")
    data = [
        {
            "code": int(kind.code),
            "name": kind.code.name,
            "class": kind.__name__,
            "retriable": kind.retriable,
            "meaning": inspect.cleandoc(kind.__doc__ or ""),
            "advice": kind.advice,
        }
        for kind in known
    ]
    if printed(output, data):
        return
    if code is None:
        rows = [(d["code"], d["name"], "yes" if d["retriable"] else "no") for d in data]
        print_table(("CODE", "NAME", "RETRIABLE"), rows)
        return
    for each in data:
        again = "trying again can help" if each["retriable"] else "trying again does not help"
        typer.echo(f"{each['name']} ({each['code']}, suiro.{each['class']}): {again}")
        typer.echo(f"  {each['meaning']}")
        if each["advice"]:
            typer.echo(f"  fix: {each['advice']}")


def _classes() -> dict[ErrorCode, type[SuiroError]]:
    """The class that stands for each code; the first one where several share it."""
    found: dict[ErrorCode, type[SuiroError]] = {}
    for kind in vars(error_tree).values():
        if inspect.isclass(kind) and issubclass(kind, SuiroError) and kind is not SuiroError:
            found.setdefault(kind.code, kind)
    return found


def _flat(kind: type[SuiroError]) -> str:
    return kind.code.name.replace("_", "").lower()
