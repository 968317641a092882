"""Arrow in, Arrow out. The only module that imports pyarrow, which takes long to load.

A batch's columns are Arrow's but for the lengths, which Arrow has as offsets: so encoding is a
difference and a copy, decoding a cumulative sum over views of the batch's own memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from suiro.model.encode import PLAIN, Body, assemble, check_count, pack_timestamps
from suiro.model.errors import BatchTooLarge, InvalidRequest
from suiro.model.headers import pack_header_columns
from suiro.model.ids import NO_TIMESTAMP_MS
from suiro.model.limits import BATCH_DECODED_BYTES_MAX
from suiro.model.strings import ALL_NULL, PackedStrings, pack_arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suiro.model.batch import Buffer
    from suiro.model.columns import BinaryColumn, Columns, HeaderColumn
    from suiro.model.encode import BatchOptions, Deltas

_BINARY: Final = pa.binary()
_INT64: Final = pa.int64()
_DIRECT: Final = frozenset((pa.binary(), pa.string()))

KEY: Final = "key"
VALUE: Final = "value"
TIMESTAMP: Final = "timestamp"
OFFSET: Final = "offset"
HEADERS: Final = "headers"

TIMESTAMP_TYPE: Final = pa.timestamp("ms", tz="UTC")
HEADERS_TYPE: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SCHEMA: Final = pa.schema(
    [
        (KEY, pa.binary()),
        (VALUE, pa.binary()),
        (TIMESTAMP, TIMESTAMP_TYPE),
        (OFFSET, pa.int64()),
    ]
)
SCHEMA_WITH_HEADERS: Final = SCHEMA.append(pa.field(HEADERS, HEADERS_TYPE))
_KNOWN: Final = frozenset(SCHEMA_WITH_HEADERS.names)


# -- encoding -------------------------------------------------------------------------------------


def encode_arrow(
    data: pa.Table | pa.RecordBatch,
    *,
    timestamp_ms: int = NO_TIMESTAMP_MS,
    options: BatchOptions = PLAIN,
) -> bytearray:
    """One whole, sealed batch of the columns `key`, `value`, `timestamp` and `headers`; a missing
    column is all null. `timestamp_ms` is for the records that have none of their own. A column
    `offset` is let through and left out, so that what was read can be written elsewhere.
    """
    count = data.num_rows
    check_count(count)
    names = data.schema.names
    if not _KNOWN.issuperset(names) or len(set(names)) != len(names):
        raise InvalidRequest(f"columns {names}: expected {sorted(_KNOWN)}, each at most once")
    columns = dict(zip(names, map(_whole, data.columns), strict=True))
    try:
        body = Body(
            _timestamps(columns.get(TIMESTAMP), timestamp_ms, count),
            _strings(columns.get(KEY)),
            _strings(columns.get(VALUE)),
            _headers(columns.get(HEADERS)),
        )
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise InvalidRequest(f"a column does not have the type it needs: {error}") from error
    return assemble(body, options.header(count, body.deltas.base_ms, body.deltas.max_ms))


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    _check_size(column)
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _check_size(column: pa.Array | pa.ChunkedArray) -> None:
    """Before it is copied into another form."""
    if column.nbytes > BATCH_DECODED_BYTES_MAX:
        raise BatchTooLarge(
            f"a column of {column.nbytes} bytes is over the limit of {BATCH_DECODED_BYTES_MAX}"
        )


def _timestamps(column: pa.Array | None, timestamp_ms: int, count: int) -> Deltas:
    if column is None:
        return pack_timestamps(timestamp_ms, count)
    kind = column.type
    if pa.types.is_timestamp(kind):
        if kind.unit != "ms":  # finer times are cut to the millisecond
            column = column.cast(pa.timestamp("ms", tz=kind.tz), safe=False)
    elif kind != _INT64:
        column = column.cast(_INT64)
    if column.null_count:
        column = column.view(_INT64).fill_null(timestamp_ms)
    numbers = np.frombuffer(column.buffers()[1], np.int64, count, 8 * column.offset)
    return pack_timestamps(numbers, count)


def _strings(column: pa.Array | None) -> PackedStrings:
    if column is None or column.null_count == len(column):
        return ALL_NULL
    column = _as_binary(column)
    offsets = _offsets(column)
    lengths = offsets[1:] - offsets[:-1]
    if not column.null_count:
        return pack_arrays(lengths, None, _data(column, offsets))
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    if lengths[~valid].any():  # Arrow lets a null cover bytes; a batch does not
        lengths = np.where(valid, lengths, 0)
        column = column.drop_null()
        offsets = _offsets(column)
    return pack_arrays(lengths, valid, _data(column, offsets))


def _as_binary(column: pa.Array) -> pa.Array:
    """The column as 32-bit binary or string, which have the same buffers."""
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    if column.type in _DIRECT:
        return column
    _check_size(column)
    return column.cast(_BINARY)


def _offsets(column: pa.Array) -> NDArray[np.int32]:
    """Where the strings of a 32-bit column start and end; a slice has a part of its buffer."""
    return np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, 4 * column.offset)


def _data(column: pa.Array, offsets: NDArray[np.int32]) -> Buffer:
    buffer = column.buffers()[2]
    return b"" if buffer is None else memoryview(buffer)[offsets[0] : offsets[-1]]


def _headers(column: pa.Array | None) -> bytes:
    if column is None or column.null_count == len(column):
        return b""
    if column.type != HEADERS_TYPE:
        column = column.cast(HEADERS_TYPE)
    counts = column.value_lengths().fill_null(0).to_numpy()
    names, values = column.flatten().flatten()
    if names.null_count:
        raise InvalidRequest("a header has no name")
    names.validate(full=True)
    if not len(names):
        return b""
    return pack_header_columns(counts, _strings(names), _strings(values))


# -- decoding -------------------------------------------------------------------------------------


def to_arrow(columns: Columns | Sequence[Columns], *, headers: bool = False) -> pa.RecordBatch:
    """One record batch of one batch, or of several in their order. Of a single batch the keys and
    values are views of its memory; several are copied together.
    """
    schema = SCHEMA_WITH_HEADERS if headers else SCHEMA
    if not isinstance(columns, Sequence):
        return pa.RecordBatch.from_arrays(_arrays(columns, headers), schema=schema)
    if not columns:
        return pa.RecordBatch.from_pylist([], schema=schema)
    if len(columns) == 1:
        return to_arrow(columns[0], headers=headers)
    pieces = [_arrays(each, headers) for each in columns]
    arrays = [pa.concat_arrays(piece) for piece in zip(*pieces, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _arrays(columns: Columns, headers: bool) -> list[pa.Array]:
    count = len(columns)
    arrays = [
        _binary(columns.keys, count),
        _binary(columns.values, count),
        _primitive(columns.timestamps_ms(), TIMESTAMP_TYPE),
        _primitive(columns.offsets(), _INT64),
    ]
    return [*arrays, _header_lists(columns.headers, count)] if headers else arrays


def _binary(column: BinaryColumn | None, count: int, arrow_type: pa.DataType = _BINARY) -> pa.Array:
    if column is None:
        return pa.nulls(count, arrow_type)
    validity = None if column.validity is None else pa.py_buffer(column.validity)
    offsets = pa.py_buffer(column.arrow_offsets())
    return pa.Array.from_buffers(arrow_type, count, [validity, offsets, pa.py_buffer(column.data)])


def _primitive(numbers: NDArray[np.int64], arrow_type: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(arrow_type, len(numbers), [None, pa.py_buffer(numbers)])


def _header_lists(column: HeaderColumn | None, count: int) -> pa.Array:
    """A record without headers has an empty list, not a null."""
    if column is None:
        return pa.array([[]] * count, HEADERS_TYPE)
    total = len(column.names)
    names = _binary(column.names, total, pa.string())
    pairs = pa.StructArray.from_arrays(
        [names, _binary(column.values, total)], fields=list(HEADERS_TYPE.value_type)
    )
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(column.counts, out=offsets[1:])
    return pa.ListArray.from_arrays(offsets, pairs, type=HEADERS_TYPE)
