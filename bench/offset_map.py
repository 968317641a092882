"""What a key costs compaction, in the bounded map and in RocksDB: the evidence of docs/adr/0005.

    python -m bench.offset_map [--keys 2000000]

Every key is put once and asked for once, in runs of 10,000 as compaction has them. RocksDB gets
what it likes best: no write-ahead log, batches of puts, many keys asked for at a time.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from rocksdict import Options, Rdict, WriteBatch, WriteOptions

from cluster.log.offset_map import BYTES_PER_KEY, SCRATCH, KeyHashes, OffsetMap

RUN = 10_000
BUFFER_BYTES = 32 << 20


def in_memory(first: np.ndarray, second: np.ndarray) -> float:
    begun = time.perf_counter()
    keys = OffsetMap(BYTES_PER_KEY * SCRATCH * 2 * len(first))
    for start in range(0, len(first), RUN):
        part = slice(start, start + RUN)
        keys.add(KeyHashes(first[part], second[part]), np.arange(start, start + len(first[part])))
    for start in range(0, len(first), RUN):
        part = slice(start, start + RUN)
        assert keys.newest(KeyHashes(first[part], second[part]))[0] == start
    return time.perf_counter() - begun


def in_rocksdb(first: np.ndarray, second: np.ndarray, folder: Path) -> tuple[float, int]:
    """The seconds, and the bytes on disk at the end."""
    options = Options(raw_mode=True)
    options.set_write_buffer_size(BUFFER_BYTES)
    unlogged: Any = WriteOptions()  # its stubs take the property for a method
    unlogged.disable_wal = True
    database = Rdict(str(folder), options=options)
    begun = time.perf_counter()
    for start in range(0, len(first), RUN):
        batch = WriteBatch(raw_mode=True)
        for offset, key in enumerate(keys_of(first, second, start), start):
            batch.put(key, offset.to_bytes(8, "little"))
        database.write(batch, unlogged)
    for start in range(0, len(first), RUN):
        found: Any = database.get(keys_of(first, second, start))
        assert found[0] == start.to_bytes(8, "little")
    took_s = time.perf_counter() - begun
    size = sum(path.stat().st_size for path in folder.iterdir())
    database.close()
    return took_s, size


def keys_of(first: np.ndarray, second: np.ndarray, start: int) -> list[Any]:
    part = slice(start, start + RUN)
    both = np.stack((first[part], second[part]), axis=1).tobytes()
    return [both[at : at + 16] for at in range(0, len(both), 16)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=2_000_000)
    count = parser.parse_args().keys
    first, second = np.random.default_rng(1).integers(0, 1 << 62, (2, count), np.uint64)
    memory_s = in_memory(first, second)
    with tempfile.TemporaryDirectory() as folder:
        rocksdb_s, size = in_rocksdb(first, second, Path(folder))
    print(
        f"{count} keys, each put and asked for once\n"
        f"bounded map: {memory_s:.2f} s, {memory_s / count * 1e6:.2f} us a key\n"
        f"RocksDB:     {rocksdb_s:.2f} s, {rocksdb_s / count * 1e6:.2f} us a key, "
        f"{size >> 20} MiB on disk"
    )


if __name__ == "__main__":
    main()
