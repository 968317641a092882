"""What goes wrong between Spark and the cluster, beside what the SDK raises.

Spark shows an error of a Python source as text, so each message names what it is about and says
what to do. These errors never travel between clients and nodes: they have no codes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from suiro.model.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from suiro.model.error_base import SuiroError
    from suiro.model.ids import Address


class ConnectorError(Exception):
    """The root of the connector's own errors."""

    advice: ClassVar[str] = ""

    def __str__(self) -> str:
        said = super().__str__()
        return f"{said}. {self.advice}" if self.advice else said


class DataLoss(ConnectorError):
    """Records that the query was to read are no longer there."""

    advice = (
        "Start with a new checkpoint, or set failOnDataLoss to false to go on with what is there"
    )


class SchemaMismatch(ConnectorError):
    """The schema that was asked for is not one that the source has."""


class BadValue(ConnectorError):
    """A value is not what `valueFormat` says."""

    advice = (
        "Read the value as bytes (without valueFormat) and parse it in Spark, "
        "where from_json can turn what is malformed into nulls"
    )


class BadRow(ConnectorError):
    """A row cannot be written."""


def no_answer(bootstrap: Iterable[Address], error: SuiroError) -> Unavailable:
    """For the driver: which option to look at."""
    nodes = ", ".join(str(address) for address in bootstrap)
    return Unavailable(
        f"the cluster at {nodes} (option 'bootstrap') does not answer: {error.message}"
    )
