"""Topics with many partitions, made in steps that a leader survives.

A decision runs to its end on the loop: a thousand partitions take it some 50 to 100 ms, and a
leader that is silent for an election timeout (300 ms) is one no longer. So what is larger becomes
several decisions, each of them committed before the next. A topic larger than one step grows until
it has all its partitions, and only then is the request answered. If the leader fails in between,
the topic is there with the partitions that it had by then, and can be given the rest.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from suiro.model.errors import InvalidRequest
from suiro.model.limits import PARTITIONS_PER_DECISION_MAX, PARTITIONS_PER_TOPIC_MAX

from cluster.controller_quorum.metadata_requests import TopicOutcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cluster.controller_quorum.controller import Controller
    from cluster.controller_quorum.metadata import MetadataMachine
    from cluster.controller_quorum.metadata_requests import NewTopic
    from cluster.host.machine import Decision

STEP: Final = PARTITIONS_PER_DECISION_MAX


async def create_topics(
    controller: Controller, topics: Sequence[NewTopic], *, validate_only: bool
) -> list[TopicOutcome]:
    """One outcome per topic, in their order."""
    outcomes: list[TopicOutcome] = []
    for some in _steps(topics):
        if len(some[0].assignment) > STEP:
            outcomes.append(_too_long_by_hand(some[0]))
            continue
        create = partial(_create, topics=some, validate_only=validate_only)
        decided = await controller.decide(create)
        for topic, outcome in zip(some, decided, strict=True):
            if outcome.error is None and topic.partitions > outcome.partitions:
                if not validate_only:
                    await add_partitions(controller, topic.name, topic.partitions)
                outcomes.append(replace(outcome, partitions=topic.partitions))
            else:
                outcomes.append(outcome)
    return outcomes


async def add_partitions(
    controller: Controller, name: str, total: int, *, validate_only: bool = False
) -> int:
    """How many there are afterwards."""
    grow = partial(_grow, name=name, total=total, validate_only=validate_only)
    while await controller.decide(grow) < total and not validate_only:
        continue
    return total


def _create(
    machine: MetadataMachine, topics: list[NewTopic], *, validate_only: bool
) -> Decision[tuple[TopicOutcome, ...]]:
    at_first = [replace(topic, partitions=_next_step(0, topic.partitions)) for topic in topics]
    return machine.decide_create_topics(at_first, validate_only=validate_only)


def _grow(machine: MetadataMachine, name: str, total: int, *, validate_only: bool) -> Decision[int]:
    topic = machine.image.topic(name)
    has = 0 if topic is None else len(topic.partitions)
    return machine.decide_add_partitions(name, _next_step(has, total), validate_only=validate_only)


def _next_step(has: int, total: int) -> int:
    """What is too much altogether is refused at once, not after the last step that is allowed."""
    return total if total > PARTITIONS_PER_TOPIC_MAX else min(total, has + STEP)


def _steps(topics: Sequence[NewTopic]) -> Iterator[list[NewTopic]]:
    """Neighbours that are one step together; a topic that is larger than a step stands alone."""
    some: list[NewTopic] = []
    size = 0
    for topic in topics:
        wanted = len(topic.assignment) or topic.partitions or 1
        if some and size + wanted > STEP:
            yield some
            some, size = [], 0
        some.append(topic)
        size += wanted
    if some:
        yield some


def _too_long_by_hand(topic: NewTopic) -> TopicOutcome:
    message = (
        f"{topic.name}: an assignment by hand has at most {STEP} partitions. "
        "Create the topic with so many and add the others, which are placed by the cluster"
    )
    return TopicOutcome(topic.name, error=InvalidRequest(message))
