"""From the positions that a person means to the offsets of every partition.

It asks a LogView for what only the cluster knows, and decides nothing that `offsets` could.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from suiro.model.errors import InvalidSetting
from suiro.model.ids import TopicPartition

from pyspark_suiro.errors import DataLoss
from pyspark_suiro.offsets import StreamOffset
from pyspark_suiro.options import EARLIEST, LATEST, AtTime, ByPartition, Everywhere

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_suiro.log_view import LogView
    from pyspark_suiro.offsets import Bounds, Offsets, Place
    from pyspark_suiro.options import Position, SourceOptions


def plan_batch(view: LogView, options: SourceOptions) -> StreamOffset:
    """What a batch reads, as it is now."""
    places = view.places(options.selection)
    bounds = view.bounds(places)
    start = resolve(view, options.starting or Everywhere(EARLIEST), bounds, "starting")
    end = resolve(view, options.ending or Everywhere(LATEST), bounds, "ending")
    for place in places:
        if start[place] < bounds.earliest[place]:
            if options.fail_on_data_loss:
                raise DataLoss(
                    f"{place.topic}-{place.partition}: startingOffsets says {start[place]}, but "
                    f"the log begins at {bounds.earliest[place]}"
                )
            start[place] = bounds.earliest[place]
    return StreamOffset(start, {p: max(start[p], min(end[p], bounds.latest[p])) for p in places})


def plan_start(view: LogView, options: SourceOptions) -> StreamOffset:
    """Where a new stream begins: an offset behind which nothing has been read yet."""
    bounds = view.bounds(view.places(options.selection))
    start = resolve(view, options.starting or Everywhere(LATEST), bounds, "starting")
    return StreamOffset(start, start)


def resolve(view: LogView, position: Position, bounds: Bounds, side: str) -> Offsets:
    """The offset of each partition that has bounds."""
    match position:
        case Everywhere(bound):
            return dict(bounds.earliest if bound == EARLIEST else bounds.latest)
        case ByPartition(offsets):
            named = _all_named(offsets, bounds, f"{side}Offsets")
            return {place: _numbered(place, said, bounds) for place, said in named.items()}
        case AtTime(None, times_ms):
            return view.at_time(_all_named(times_ms, bounds, f"{side}OffsetsByTimestamp"))
        case AtTime(int(time_ms)):
            return view.at_time(dict.fromkeys(bounds.latest, time_ms))
        case AtTime():
            raise AssertionError("a time is given for all partitions or for each")
        case other:
            assert_never(other)


def _numbered(place: Place, offset: int, bounds: Bounds) -> int:
    if offset == EARLIEST:
        return bounds.earliest[place]
    if offset == LATEST:
        return bounds.latest[place]
    return offset


def _all_named(said: Mapping[TopicPartition, int], bounds: Bounds, name: str) -> dict[Place, int]:
    """Spark's Kafka source wants every partition named too: a forgotten one would be guessed."""
    places = {TopicPartition(p.topic, p.partition): p for p in bounds.latest}
    missing = sorted(places.keys() - said.keys())
    unknown = sorted(said.keys() - places.keys())
    if missing or unknown:
        what = [f"it lacks {', '.join(map(str, missing))}"] if missing else []
        what += [f"{', '.join(map(str, unknown))} is not among them"] if unknown else []
        raise InvalidSetting(
            f"{name} must name every partition that is read, and no other: {' and '.join(what)}"
        )
    return {place: said[partition] for partition, place in places.items()}
