"""Which topics a member wants, by name or by pattern, and which partitions there are.

`Topics` is soft: the metadata as this coordinator knows them, handed in as facts. Until they are,
nothing is assigned: an empty view of the cluster would take everything away from everybody.

A pattern is matched against every topic's name on the coordinator, where one member must not be
able to stop the others: no group may be repeated and only a few repetitions are allowed, so that a
match takes polynomial time in names of bounded length.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from suiro.model.errors import InvalidRequest
from suiro.model.ids import TopicPartition
from suiro.model.topics import is_internal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from suiro.model.ids import TopicId

    from cluster.groupcoord.records import MemberState

PATTERN_LENGTH_MAX: Final = 249
REPETITIONS_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class TopicFact:
    """A topic as the metadata have it."""

    topic_id: TopicId
    partitions: int


class Topics:
    """All topics by name; `are_known` once the metadata have been seen."""

    __slots__ = ("are_known", "by_name")

    def __init__(self) -> None:
        self.are_known = False
        self.by_name: Mapping[str, TopicFact] = {}

    def learn(self, topics: Mapping[str, TopicFact]) -> None:
        self.are_known = True
        self.by_name = dict(topics)

    def of(self, member: MemberState) -> tuple[str, ...]:
        """The topics that there are and that the member subscribes to, in order."""
        if not member.pattern:
            return tuple(name for name in member.topics if name in self.by_name)
        found = {name for name in member.topics if name in self.by_name}
        matches = _compiled(member.pattern).fullmatch
        found |= {name for name in self.by_name if matches(name) and not is_internal(name)}
        return tuple(sorted(found))

    def partitions(self, names: Iterable[str]) -> list[TopicPartition]:
        """All partitions of these topics, in order."""
        return [
            TopicPartition(name, number)
            for name in sorted(set(names))
            for number in range(self.by_name[name].partitions)
        ]

    def wanted(self, members: Iterable[MemberState]) -> list[TopicPartition]:
        """Every partition that somebody subscribes to."""
        return self.partitions(name for member in members for name in self.of(member))

    def counts(self, members: Iterable[MemberState]) -> dict[str, int]:
        """How many partitions each topic has that somebody subscribes to."""
        names = {name for member in members for name in self.of(member)}
        return {name: self.by_name[name].partitions for name in names}

    def differs(self, topic: str, topic_id: TopicId) -> bool:
        """Whether that topic is not the one that has the name now."""
        known = self.by_name.get(topic)
        return bool(topic_id) and known is not None and known.topic_id != topic_id


def check_pattern(pattern: str) -> None:
    """Raise InvalidRequest, saying why, for a pattern that is wrong or could take for ever."""
    if len(pattern) > PATTERN_LENGTH_MAX:
        raise InvalidRequest(f"a pattern has at most {PATTERN_LENGTH_MAX} characters")
    bare = re.sub(r"\\.|\[(?:\\.|[^\]])*\]", "c", pattern)
    if re.search(r"\)[*+{]", bare) or len(re.findall(r"[*+{]", bare)) > REPETITIONS_MAX:
        raise InvalidRequest(
            f"{pattern!r}: no group may be repeated, and at most {REPETITIONS_MAX} of *, + and {{ "
            "are allowed"
        )
    try:
        _compiled(pattern)
    except re.error as error:
        raise InvalidRequest(f"{pattern!r} is not a regular expression: {error}") from None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
