"""How much memory a client takes when things go badly: a consumer that lags far behind, and a
producer whose brokers are gone.

`python -m tests.cluster.sdk_memory --megabytes 1000` fills a topic and runs both, each in a process
of its own that tells how far its resident memory grew.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

import pyarrow as pa
import suiro
from suiro.model.errors import BufferFull

from tests.cluster.harness import SingleNode

MB = 1_000_000
TOPIC = "lag"
PARTITIONS = 3
FILL_RECORDS = 500_000
BUFFER_MEMORY = 32 << 20
DELIVERY_TIMEOUT_MS = 3_000
READY = "ready"


@dataclass(frozen=True, slots=True)
class Figures:
    """What one client's process tells at its end."""

    bound_mb: float
    """What its settings allow to be buffered."""
    growth_mb: float
    """Resident memory at its peak, over what it was before the first record."""
    handled: int
    error: str = ""


def resident_mb(field: str) -> float:
    """VmRSS is now, VmHWM the peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1000 for line in lines if line.startswith(field))


def lag(bootstrap: str, seconds: float = 3.0) -> Figures:
    """Read a few records now and then, while a whole topic waits to be read."""
    with suiro.Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        before = resident_mb("VmRSS")
        consumer.assign(consumer.partitions_of(TOPIC))
        end, seen = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            seen += len(consumer.poll(1, max_records=100))
            time.sleep(0.01)
        bound = min(consumer.asynchronous.settings.fetch_credit * PARTITIONS, 64 << 20)
    return Figures(bound / MB, resident_mb("VmHWM") - before, seen)


def send_into_the_void(bootstrap: str) -> Figures:
    """Send as fast as one can, until long after the brokers have died."""
    with suiro.Producer(
        bootstrap,
        buffer_memory=BUFFER_MEMORY,
        max_block_ms=200,
        delivery_timeout_ms=DELIVERY_TIMEOUT_MS,
    ) as producer:
        producer.send(TOPIC, b"warm").result(10)
        before = resident_mb("VmRSS")
        print(READY, flush=True)
        sys.stdin.readline()
        last, sent = producer.send(TOPIC, b"first"), 1
        end = time.monotonic() + 2 * DELIVERY_TIMEOUT_MS / 1000
        while time.monotonic() < end:
            try:
                last = producer.send(TOPIC, b"%0100d" % sent)
                sent += 1
            except BufferFull:
                continue  # it waited for room first
        try:
            last.result(2 * DELIVERY_TIMEOUT_MS / 1000)
            error = ""
        except suiro.SuiroError as failure:
            error = f"{type(failure).__name__}: {failure}"
        return Figures(BUFFER_MEMORY / MB, resident_mb("VmHWM") - before, sent, error)


def fill(bootstrap: str, megabytes: int) -> None:
    table = pa.table({"value": pa.array([b"v" * 100] * FILL_RECORDS, pa.binary())})
    with suiro.Admin(bootstrap) as admin:
        admin.create_topic(TOPIC, partitions=PARTITIONS)
    with suiro.Producer(bootstrap) as producer:
        for _ in range(max(1, megabytes * MB // (100 * FILL_RECORDS))):
            producer.send_arrow(TOPIC, table).wait(60)


def run_both(directory: Path, megabytes: int) -> dict[str, Figures]:
    """Both clients, the second of them while its node is killed."""
    node = SingleNode(directory)
    try:
        node.start()
        fill(node.bootstrap, megabytes)
        with _child("lag", node.bootstrap) as reader:
            lagging = _figures(reader)
        with _child("void", node.bootstrap) as sender:
            assert sender.stdout is not None
            assert sender.stdin is not None
            assert sender.stdout.readline().strip() == READY
            node.kill()
            sender.stdin.write("\n")
            sender.stdin.flush()
            void = _figures(sender)
    finally:
        node.kill()
    return {"a consumer that lags": lagging, "a producer without brokers": void}


def _child(kind: str, bootstrap: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.cluster.sdk_memory", "--child", kind, bootstrap]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )


def _figures(child: subprocess.Popen[str]) -> Figures:
    output: IO[str] | None = child.stdout
    assert output is not None
    return Figures(**json.loads(output.readline()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1_000)
    parser.add_argument("--child", nargs=2, metavar=("KIND", "BOOTSTRAP"))
    arguments = parser.parse_args()
    if arguments.child:
        kind, bootstrap = arguments.child
        figures = lag(bootstrap) if kind == "lag" else send_into_the_void(bootstrap)
        print(json.dumps(asdict(figures)), flush=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, figures in run_both(Path(folder), arguments.megabytes).items():
            print(f"{name:28} {asdict(figures)}")


if __name__ == "__main__":
    main()
