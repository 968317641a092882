"""A sink that dies where it is told to, for the kill matrix: `suiro` with faults planted.

Each fault strikes once, in one batch, in whichever process gets there first; a file in the fault
directory marks that it did. `pids` in the same directory names the processes of the driver.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark_suiro.source import SuiroSource
from pyspark_suiro.writer import BATCH_ID, StreamWriter

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import WriterCommitMessage
    from pyspark.sql.types import StructType

FAULTS = {
    1: "driver killed before commit",
    3: "driver killed between commit and checkpoint",
    5: "worker killed in mid-write",
    6: "commit raises before the decision",
    7: "commit raises after the decision",
    9: "nodes killed before commit",
}
"""By batch."""

PLANT = "faults"
"""The option that says where the fault directory is."""

DELIVERED_S = 1.0
NODES_BACK_S = 60.0


class FaultySource(SuiroSource):
    @classmethod
    def name(cls) -> str:
        return "suiro_faulty"

    def streamWriter(self, schema: StructType, overwrite: bool) -> FaultyWriter:  # noqa: N802 - Spark's name
        given = dict(self.options)
        return FaultyWriter(schema, given, Path(given.pop(PLANT)))


class FaultyWriter(StreamWriter):
    def __init__(self, schema: StructType, given: dict[str, str], plant: Path) -> None:
        super().__init__(schema, given)
        self.plant = plant

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None
        number = int(context.getLocalProperty(BATCH_ID) or -1)
        if FAULTS.get(number, "").startswith("worker") and strike(self.plant, number):
            iterator = _dying(iterator)
        return super().write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        fault = FAULTS.get(batchId, "")
        strikes = bool(fault) and not fault.startswith("worker") and strike(self.plant, batchId)
        if strikes and "before" in fault:
            self._strike(fault)
        super().commit(messages, batchId)
        if strikes and "before" not in fault:
            self._strike(fault)

    def _strike(self, fault: str) -> None:
        if fault.startswith("driver"):
            for pid in (self.plant / "pids").read_text().split():
                os.kill(int(pid), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        elif fault.startswith("nodes"):
            (self.plant / "kill-nodes").touch()
            until_s = time.monotonic() + NODES_BACK_S
            while not (self.plant / "nodes-killed").exists():
                assert time.monotonic() < until_s, "nobody killed the nodes"
                time.sleep(0.01)
        else:
            raise RuntimeError(fault)


def strike(plant: Path, number: int) -> bool:
    """Whether this process is the first to get to the fault of the batch."""
    try:
        os.close(os.open(plant / f"struck-{number}", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def _dying(iterator: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Some rows, time enough for them to be stored, and death."""
    for _ in range(2):
        yield next(iterator)
    time.sleep(DELIVERED_S)
    os.kill(os.getpid(), signal.SIGKILL)
