"""A sink that dies where it is told to, for the kill matrix: `suiro` with faults planted.

Each fault strikes once, in one batch, in whichever process gets there first; a file in the fault
directory marks that it did. `pids` in the same directory names the processes of the driver.
"""

from __future__ import annotations

import os
import signal
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark_suiro.source import SuiroSource
from pyspark_suiro.writer import BATCH_ID, StreamWriter

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import WriterCommitMessage
    from pyspark.sql.types import StructType

Plan = dict[int, str]
"""What goes wrong, by batch."""

BEFORE: Final = "driver killed before commit"
BETWEEN: Final = "driver killed between commit and checkpoint"
AFTER: Final = "driver killed after the checkpoint"
WORKER: Final = "worker killed in mid-write"
RAISES_BEFORE: Final = "commit raises before the decision"
RAISES_AFTER: Final = "commit raises after the decision"
NODES: Final = "nodes killed before commit"
ALL: Final = "driver and nodes killed before commit"
SLOW_DONE: Final = "task stuck after its last row"
SLOW_HALF: Final = "task stuck in mid-write"

PLANS: Final[dict[str, Plan]] = {
    "kills": {
        1: BEFORE,
        3: BETWEEN,
        4: AFTER,
        5: WORKER,
        6: RAISES_BEFORE,
        7: RAISES_AFTER,
        9: NODES,
        10: ALL,
    },
    "speculation": {1: SLOW_DONE, 2: SLOW_HALF},
    "none": {},
}
BEFORE_COMMIT: Final = (BEFORE, RAISES_BEFORE, NODES, ALL)
AFTER_COMMIT: Final = (BETWEEN, RAISES_AFTER)

PLANT: Final = "faults"
"""The option that says where the fault directory is."""
PLAN: Final = "plan"
"""The option that says which of the plans it is."""

DELIVERED_S: Final = 1.0
NODES_KILLED_S: Final = 60.0
STUCK_S: Final = 120.0


class FaultySource(SuiroSource):
    @classmethod
    def name(cls) -> str:
        return "suiro_faulty"

    def streamWriter(self, schema: StructType, overwrite: bool) -> FaultyWriter:  # noqa: N802 - Spark's name
        given = dict(self.options)
        plant, plan = Path(given.pop(PLANT)), PLANS[given.pop(PLAN)]
        return FaultyWriter(schema, given, plant, plan)


class FaultyWriter(StreamWriter):
    def __init__(self, schema: StructType, given: dict[str, str], plant: Path, plan: Plan) -> None:
        super().__init__(schema, given)
        self.plant = plant
        self.plan = plan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None
        number = int(context.getLocalProperty(BATCH_ID) or -1)
        fault = self.plan.get(number)
        if fault == WORKER and strike(self.plant, number):
            return super().write(_dying(iterator))
        is_stuck = fault in {SLOW_DONE, SLOW_HALF} and strike(self.plant, number)
        if is_stuck and fault == SLOW_HALF:
            return super().write(_stalling(iterator))
        message = super().write(iterator)
        if is_stuck:
            time.sleep(STUCK_S)  # its rows are all there, and it never says so
        elif fault in {SLOW_DONE, SLOW_HALF} and context.attemptNumber():
            (self.plant / f"twin-{number}").touch()
        return message

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        fault = self.plan.get(batchId, "")
        if fault in BEFORE_COMMIT and strike(self.plant, batchId):
            self._strike(fault)
        super().commit(messages, batchId)
        if fault in AFTER_COMMIT and strike(self.plant, batchId):
            self._strike(fault)

    def _strike(self, fault: str) -> None:
        if fault in {NODES, ALL}:
            self._have_nodes_killed()
        if fault in {BEFORE, BETWEEN, ALL}:
            kill_driver(self.plant)
            os.kill(os.getpid(), signal.SIGKILL)
        if fault in {RAISES_BEFORE, RAISES_AFTER}:
            raise RuntimeError(fault)

    def _have_nodes_killed(self) -> None:
        """The matrix does it, and starts them again while the commit goes on."""
        killed = self.plant / "nodes-killed"
        killed.unlink(missing_ok=True)
        (self.plant / "kill-nodes").touch()
        until_s = time.monotonic() + NODES_KILLED_S
        while not killed.exists():
            assert time.monotonic() < until_s, "nobody killed the nodes"
            time.sleep(0.01)


def kill_driver(plant: Path) -> None:
    """kill -9 of the Java process and the Python one."""
    for pid in (plant / "pids").read_text().split():
        os.kill(int(pid), signal.SIGKILL)


def strike(plant: Path, number: int) -> bool:
    """Whether this process is the first to get to the fault of the batch."""
    try:
        os.close(os.open(plant / f"struck-{number}", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def _dying(iterator: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Some rows, time enough for them to be stored, and death."""
    yield from islice(iterator, 2)
    time.sleep(DELIVERED_S)
    os.kill(os.getpid(), signal.SIGKILL)


def _stalling(iterator: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Some rows, and no more for a long time."""
    yield from islice(iterator, 1)
    time.sleep(STUCK_S)
    yield from iterator
