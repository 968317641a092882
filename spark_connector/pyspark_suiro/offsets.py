"""Where a query is, how far a batch goes, and how it is cut into tasks. Pure.

What always holds:
- an end is never before its start, whatever the cluster says its latest offset is (C5);
- the offset that Spark keeps in its checkpoint has the start of its batch beside the end, so a
  batch that is run again is the same batch, also the first one, for which Spark asks anew where to
  begin;
- it has the id of each topic: one that was deleted and made again is another topic.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark_suiro.errors import DataLoss

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

ID: Final = "id"
START: Final = "start"
END: Final = "end"


class Place(NamedTuple):
    """One partition of one incarnation of a topic."""

    topic: str
    partition: int
    topic_id: str


Offsets = dict[Place, int]


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the cluster says of each partition."""

    earliest: Offsets
    latest: Offsets


@dataclass(frozen=True, slots=True)
class Range:
    """Offsets of one partition from `start` up to `end`, which is not included."""

    place: Place
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """What Spark keeps of a batch."""

    start: Offsets
    end: Offsets

    def to_json(self) -> dict[str, Any]:
        """Keys in order, as Spark compares the text."""
        topics: dict[str, Any] = {}
        for place in sorted(self.end):
            said = topics.setdefault(place.topic, {END: {}, ID: place.topic_id, START: {}})
            assert said[ID] == place.topic_id, "one incarnation of a topic at a time"
            said[END][str(place.partition)] = self.end[place]
            said[START][str(place.partition)] = self.start[place]
        return topics

    @classmethod
    def from_json(cls, topics: Mapping[str, Any]) -> StreamOffset:
        start: Offsets = {}
        end: Offsets = {}
        for topic, said in topics.items():
            for number, offset in said[END].items():
                place = Place(topic, int(number), said[ID])
                end[place] = offset
                start[place] = said[START][number]
        return cls(start, end)


@dataclass(slots=True)
class Batch:
    """What comes next after a point, and what is missing of it."""

    offset: StreamOffset
    losses: list[str] = field(default_factory=list)

    def check(self, fail_on_data_loss: bool) -> None:
        if self.losses and fail_on_data_loss:
            raise DataLoss("; ".join(self.losses))


def next_batch(done: Offsets, bounds: Bounds) -> Batch:
    """From where the query is to the latest offsets.

    A partition that is new begins at its earliest offset. What is missing is told, and passed over.
    """
    batch = Batch(StreamOffset({}, {}))
    known = {(place.topic, place.partition): place for place in done}
    for place, latest in sorted(bounds.latest.items()):
        earliest = bounds.earliest[place]
        before = known.pop((place.topic, place.partition), None)
        start = _start(place, before, done, earliest, batch.losses)
        batch.offset.start[place] = start
        batch.offset.end[place] = max(start, latest)
    batch.losses += _gone(known.values(), bounds)
    return batch


def _start(
    place: Place, before: Place | None, done: Offsets, earliest: int, losses: list[str]
) -> int:
    if before is None:
        if earliest > 0:
            losses.append(
                f"{_name(place)} is new to this query, and its records before offset {earliest} "
                "are deleted already"
            )
        return earliest
    if before != place:
        loss = (
            f"topic {place.topic} was deleted and created again since the last batch (its id was "
            f"{before.topic_id}, now it is {place.topic_id})"
        )
        if loss not in losses:
            losses.append(loss)
        return earliest
    if done[place] < earliest:
        losses.append(
            f"{_name(place)}: the query is at offset {done[place]}, but the log begins at "
            f"{earliest}: {earliest - done[place]} offsets were deleted before they were read"
        )
        return earliest
    return done[place]


def _gone(places: Iterable[Place], bounds: Bounds) -> list[str]:
    left = {place.topic for place in bounds.latest}
    topics = sorted({place.topic for place in places})
    return [
        f"topic {topic} has fewer partitions than before" if topic in left
        else f"topic {topic} was deleted"
        for topic in topics
    ]  # fmt: skip


def _name(place: Place) -> str:
    return f"{place.topic}-{place.partition}"


def limited(offset: StreamOffset, offsets_max: int) -> StreamOffset:
    """At most so many offsets, each partition in proportion to what it has."""
    sizes = {place: end - offset.start[place] for place, end in offset.end.items()}
    total = sum(sizes.values())
    if total <= offsets_max:
        return offset
    shares = {place: size * offsets_max // total for place, size in sizes.items()}
    left = offsets_max - sum(shares.values())
    for place in sorted(shares):  # what rounding left over: fewer than there are partitions
        if left and shares[place] < sizes[place]:
            shares[place] += 1
            left -= 1
    return StreamOffset(offset.start, {p: offset.start[p] + shares[p] for p in offset.end})


def not_beyond(offset: StreamOffset, target: Offsets) -> StreamOffset:
    """No further than the target, and not into a partition that it does not have."""
    end = {
        place: max(offset.start[place], min(end, target.get(place, offset.start[place])))
        for place, end in offset.end.items()
    }
    return StreamOffset(offset.start, end)


def is_empty(offset: StreamOffset) -> bool:
    return offset.start == offset.end


def ranges(offset: StreamOffset) -> list[Range]:
    """What there is to read, in order; a partition without anything has no range."""
    return [
        Range(place, offset.start[place], end)
        for place, end in sorted(offset.end.items())
        if offset.start[place] < end
    ]


def split(whole: Sequence[Range], count_min: int = 0, size_max: int = 0) -> list[Range]:
    """At least `count_min` ranges, if there are as many offsets, each of at most `size_max`."""
    total = sum(each.size for each in whole)
    size = total
    if count_min > len(whole):
        size = max(total // count_min, 1)
    if size_max:
        size = min(size, size_max)
    return [part for each in whole for part in _cut(each, size)]


def _cut(whole: Range, size: int) -> list[Range]:
    """Equal pieces of at most `size`."""
    count = -(-whole.size // max(size, 1))
    edges = [whole.start + whole.size * i // count for i in range(count + 1)]
    return [Range(whole.place, *pair) for pair in pairwise(edges)]
