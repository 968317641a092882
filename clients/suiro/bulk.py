"""Many records at once: lists as `Rows`, anything Arrow-shaped as an `ArrowRun`.

Everything that can be wrong with the data is found here, before a record of it is staged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from suiro.handle import Piece
from suiro.model.errors import InvalidRequest
from suiro.staging import RECORD_OVERHEAD, Rows, picked_places, split_evenly

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from suiro.handle import Outcomes, Places
    from suiro.model.encode import BatchOptions
    from suiro.model.error_base import SuiroError

COLUMNS: Final = ("value", "key", "timestamp", "partition", "headers")
IGNORED: Final = ("offset",)
"""What `poll_arrow` adds: what was read can be written elsewhere as it is."""


def rows_of_lists(
    outcomes: Outcomes,
    values: Sequence[bytes | None],
    keys: Sequence[bytes | None] | None,
    *,
    headers: Sequence[Any] | None,
    partition: int | None,
    timestamps_ms: Sequence[int] | int,
) -> Rows:
    """Lists as a run. Raises InvalidRequest where their lengths or types do not fit."""
    count = len(values)
    _check_bytes(values, "values")
    if keys is not None:
        _check_length(keys, "keys", count)
        _check_bytes(keys, "keys")
    if headers is not None:
        _check_length(headers, "headers", count)
    if isinstance(timestamps_ms, int):
        times = np.full(count, timestamps_ms, np.int64)
    else:
        _check_length(timestamps_ms, "timestamps_ms", count)
        times = np.array(timestamps_ms, np.int64)
    rows = Rows(
        outcomes,
        range(count),
        values,
        keys,
        times,
        None if headers is None else [pairs or () for pairs in headers],
        None if partition is None else np.full(count, partition, np.int64),
    )
    rows.size = rows.measure()
    return rows


def _check_length(column: Sequence[Any], name: str, count: int) -> None:
    if len(column) != count:
        raise InvalidRequest(f"{count} values, but {len(column)} {name}")


def _check_bytes(column: Sequence[Any], name: str) -> None:
    wrong = set(map(type, column)) - {bytes, type(None)}
    if wrong:
        names = ", ".join(sorted(kind.__name__ for kind in wrong))
        raise InvalidRequest(f"{name} has {names}; they must be bytes or None")


@dataclass(slots=True)
class ArrowRun:
    """Rows of an Arrow record batch with the columns that `encode_arrow` takes."""

    outcomes: Outcomes
    places: Places
    data: pa.RecordBatch
    timestamp_ms: int
    """For rows without a timestamp of their own."""
    partitions: NDArray[np.int64] | None
    size: int
    is_followed: bool = False

    def __len__(self) -> int:
        return int(self.data.num_rows)

    def pick(self, places: NDArray[np.int64]) -> ArrowRun:
        where = picked_places(self.places, places)
        return self._part(where, self.data.take(_arrow_array(places)), None)

    def split(self, size_max: int) -> Sequence[ArrowRun]:
        return split_evenly(self, size_max)

    def cut(self, start: int, end: int) -> ArrowRun:
        wanted = None if self.partitions is None else self.partitions[start:end]
        return self._part(self.places[start:end], self.data.slice(start, end - start), wanted)

    def joins(self, other: object) -> bool:
        return isinstance(other, ArrowRun) and self.data.schema.equals(other.data.schema)

    def encode(self, runs: Sequence[Any], options: BatchOptions) -> bytearray:
        import pyarrow as pa

        from suiro.model.arrow import encode_arrow

        data = self.data if len(runs) == 1 else pa.Table.from_batches([r.data for r in runs])
        return encode_arrow(data, timestamp_ms=self.timestamp_ms, options=options)

    def settle(self, partition: int, base_offset: int, error: SuiroError | None) -> None:
        self.outcomes.settle(Piece(self.places, partition, self._times(), base_offset, error))

    def _times(self) -> NDArray[np.int64]:
        import pyarrow as pa

        if "timestamp" not in self.data.schema.names:
            return np.broadcast_to(np.int64(self.timestamp_ms), (len(self),))
        column = self.data.column("timestamp").cast(pa.int64()).fill_null(self.timestamp_ms)
        times: NDArray[np.int64] = column.to_numpy(zero_copy_only=False)
        return times

    def _part(
        self, places: Places, data: pa.RecordBatch, partitions: NDArray[np.int64] | None
    ) -> ArrowRun:
        size = _size_of(data)
        return ArrowRun(self.outcomes, places, data, self.timestamp_ms, partitions, size)

    # -- as a KeyColumn ---------------------------------------------------------------------------

    def is_empty(self) -> bool:
        names = self.data.schema.names
        return "key" not in names or self.data.column("key").null_count == len(self)

    def arrays(
        self,
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_] | None]:
        column = self.data.column("key")
        _, offsets_buffer, data = column.buffers()
        offsets = np.frombuffer(offsets_buffer, np.int32, len(column) + 1, 4 * column.offset)
        starts = offsets[:-1].astype(np.int64)
        valid = None
        lengths = offsets[1:] - starts
        if column.null_count:
            valid = column.is_valid().to_numpy(zero_copy_only=False)
            lengths = np.where(valid, lengths, 0)
        used = b"" if data is None else memoryview(data)[: int(offsets[-1])]
        return np.frombuffer(used, np.uint8), starts, lengths, valid

    def to_list(self) -> Sequence[bytes | None]:
        if "key" not in self.data.schema.names:
            return [None] * len(self)
        keys: list[bytes | None] = self.data.column("key").to_pylist()
        return keys


def run_of_arrow(outcomes: Outcomes, data: Any, timestamp_ms: int) -> ArrowRun:
    """Anything Arrow-shaped as a run. Raises InvalidRequest for wrong columns or types."""
    import pyarrow as pa

    table = _as_table(data)
    names = table.schema.names
    unknown = [name for name in names if name not in (*COLUMNS, *IGNORED)]
    if unknown or len(set(names)) != len(names) or "value" not in names:
        raise InvalidRequest(
            f"columns {', '.join(names) or 'none'}; needed is value, and key, timestamp, partition "
            "and headers may be there"
        )
    columns = {}
    for name in (name for name in names if name in COLUMNS):
        wanted = _type_of(name, table.schema.field(name).type)
        try:
            columns[name] = _whole(table.column(name).cast(wanted))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            kind = table.schema.field(name).type
            raise InvalidRequest(f"column {name} is {kind}; it must be {wanted}") from error
    partitions = None
    if "partition" in columns:
        partitions = columns.pop("partition").fill_null(-1).to_numpy(zero_copy_only=False)
    batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    places = range(batch.num_rows)
    return ArrowRun(outcomes, places, batch, timestamp_ms, partitions, _size_of(batch))


def _as_table(data: Any) -> pa.Table:
    import pyarrow as pa

    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return pa.table(data)
    if type(data).__module__.startswith("pandas."):
        return pa.Table.from_pandas(data, preserve_index=False)
    raise InvalidRequest(
        f"{type(data).__name__} is no Arrow table, pandas or polars frame, nor does it have the "
        "Arrow stream interface"
    )


def _type_of(name: str, given: pa.DataType) -> pa.DataType:
    """What a column has to be, or can be cast to."""
    import pyarrow as pa

    from suiro.model.arrow import HEADERS_TYPE

    if name in {"value", "key"}:
        return pa.string() if given == pa.string() else pa.binary()
    if name == "partition":
        return pa.int64()
    if name == "headers":
        return HEADERS_TYPE
    if pa.types.is_timestamp(given):
        return pa.timestamp("ms", tz=given.tz)
    return pa.int64()


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _size_of(batch: pa.RecordBatch) -> int:
    return int(batch.nbytes) + RECORD_OVERHEAD * int(batch.num_rows)


def _arrow_array(places: NDArray[np.int64]) -> pa.Array:
    import pyarrow as pa

    return pa.array(places)
