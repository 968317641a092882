"""How far a query is behind, in its progress reports. Pure.

A Python source cannot add metrics of its own to a report; but the report has the latest offset that
the source tells of, whatever that is, so the lag is told in there.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark_suiro.offsets import StreamOffset

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_suiro.offsets import Offsets, Place

LAG: Final = "lag"
LATEST_OFFSET: Final = "latestOffset"


@dataclass(frozen=True, slots=True)
class Lag:
    """Of one partition."""

    records: int
    """Offsets behind the batch that is planned, from the next record on that can be read."""
    seconds: float | None
    """The age of that record; 0 when everything is read, None when it could not be found out."""


UP_TO_DATE: Final = Lag(0, 0.0)


def with_lag(latest: Offsets, lags: Mapping[Place, Lag]) -> dict[str, Any]:
    """What the source reports as its latest offset."""
    topics = StreamOffset(latest, latest).to_json()
    for place in latest:
        of_topic = topics[place.topic].setdefault(LAG, {})
        of_topic[str(place.partition)] = asdict(lags.get(place, UP_TO_DATE))
    return topics


def lag(source: Mapping[str, Any]) -> dict[str, Lag]:
    """By partition, from one of the `sources` of a query's progress.

    ```python
    lags = pyspark_suiro.lag(query.lastProgress["sources"][0])
    behind = sum(each.records for each in lags.values())
    ```
    """
    said = source.get(LATEST_OFFSET)
    topics = json.loads(said) if isinstance(said, str) else said or {}
    return {
        f"{topic}-{partition}": Lag(**each)
        for topic, told in sorted(topics.items())
        for partition, each in told.get(LAG, {}).items()
    }
