"""The whole pipeline on this machine, through a crash, checked: `make demo`.

Clicks are produced all the time; the Spark job cleans, joins, windows and counts them and writes
the result back; a consumer shows it. In the middle the driver of the job and a broker are killed
(kill -9), and started again. In the end what was written is compared with a plain Python loop over
what was sent.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import suiro

from cluster.local_cluster import Layout, LocalCluster
from examples.pipeline import clicks, job
from examples.pipeline.clicks import WINDOW_MS, Cell, Total, Visitors, expected, expected_words
from examples.pipeline.standalone import StandaloneSpark, worker_environment

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

CLICKS_PER_S: Final = 500
TICK_S: Final = 0.1
LATE_CLICKS: Final = 50
STAGE_S: Final = 240.0
"""No stage of the demo takes longer on any machine."""
PAUSE_S: Final = 3.0
KILLED: Final = "broker-2"
BEGAN_S: Final = time.monotonic()


def say(text: str) -> None:
    print(f"{time.monotonic() - BEGAN_S:6.1f} s  {text}", flush=True)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass
class Traffic:
    """Visitors and writers, in a thread of their own; remembers what it has sent."""

    bootstrap: str
    clicks: list[bytes] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    _visitors: Visitors = field(default_factory=Visitors)
    _stop: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Self:
        self._producer = suiro.Producer(self.bootstrap)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._producer.close()

    def stop(self) -> None:
        """When it returns, everything sent is stored."""
        self._stop.set()
        self._thread.join()
        self._producer.flush()

    def send(self, messages: list[bytes]) -> None:
        with self._lock:
            self.clicks += messages
        self._producer.send_many(job.CLICKS, messages)

    def send_late(self) -> None:
        self.send(self._visitors.late(now_ms(), LATE_CLICKS))

    def send_closing(self) -> None:
        """Not one of those that are counted: its own window stays open."""
        self._producer.send_many(job.CLICKS, [clicks.closing_click(now_ms())])
        self._producer.flush()

    def _run(self) -> None:
        while not self._stop.wait(TICK_S):
            self.send(self._visitors.messages(now_ms(), int(CLICKS_PER_S * TICK_S)))
            line = clicks.LINES[len(self.lines) % len(clicks.LINES)]
            self.lines.append(line)
            self._producer.send_many(job.LINES, [line.encode()])


@dataclass
class SparkJob:
    """The job, submitted as anybody would."""

    bootstrap: str
    folder: Path
    master: str
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        path = worker_environment()["PYTHONPATH"]
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    str(Path(sys.executable).with_name("spark-submit")),
                    *("--master", self.master),
                    *("--conf", "spark.ui.enabled=false"),
                    *("--conf", "spark.driver.host=127.0.0.1"),
                    *("--conf", "spark.log.level=WARN"),
                    *("--conf", "spark.executor.memory=700m"),
                    *("--conf", f"spark.executorEnv.PYTHONPATH={path}"),
                    str(Path(job.__file__)),
                    *("--bootstrap", self.bootstrap),
                    *("--checkpoints", str(self.folder / "checkpoints")),
                ],
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, **worker_environment()},
            )

    @property
    def log_path(self) -> Path:
        return self.folder / "job.log"

    def check(self) -> None:
        assert self.process is not None
        if self.process.poll() is not None:
            said = self.log_path.read_text(errors="replace")[-3000:]
            raise RuntimeError(f"the job ended by itself:\n{said}")

    def kill(self) -> None:
        """kill -9 of the driver, Java and Python."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()


class Results:
    """What has been committed to the result topics so far."""

    def __init__(self, bootstrap: str) -> None:
        self.windows: list[tuple[Cell, Total]] = []
        self.words: dict[str, int] = {}
        self._consumer = suiro.Consumer(bootstrap, auto_offset_reset="earliest")
        topics = (job.CLICKS_PER_WINDOW, job.WORD_COUNTS)
        self._consumer.assign([p for topic in topics for p in self._consumer.partitions_of(topic)])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def take(self, timeout_s: float = 0.5) -> int:
        """Show what is new; how many records that were."""
        records = list(self._consumer.poll(timeout_s))
        while more := list(self._consumer.poll(TICK_S)) if records else []:
            records += more  # what was committed as one is shown as one
        fresh: dict[int, list[str]] = {}
        for record in records:
            assert record.key is not None
            assert record.value is not None
            if record.topic == job.WORD_COUNTS:
                self.words[record.key.decode()] = int(record.value)
                continue
            cell, total = _row(json.loads(record.value))
            self.windows.append((cell, total))
            fresh.setdefault(cell.start_ms, []).append(f"{cell.country} {total.clicks}")
        for start_ms, counts in sorted(fresh.items()):
            clock = time.strftime("%T", time.localtime(start_ms / 1000))
            say(f"   window {clock} + {WINDOW_MS // 1000} s: {', '.join(sorted(counts))}")
        return len(records)


def _row(said: dict[str, Any]) -> tuple[Cell, Total]:
    return Cell(said["start_ms"], said["country"]), Total(said["clicks"], said["dwell_ms"])


@dataclass
class Demo:
    cluster: LocalCluster
    spark_job: SparkJob
    traffic: Traffic
    results: Results

    def run(self) -> bool:
        say(f"clicks come in, {CLICKS_PER_S} a second; the job is submitted")
        self.spark_job.start()
        self.until("the first window", lambda: bool(self.results.windows))
        self.traffic.send_late()
        say(f"{LATE_CLICKS} clicks came an hour late: the watermark has passed them")
        self.watch(PAUSE_S)
        self.crash()
        before = len(self.results.windows)
        self.until("a window after the crash", lambda: len(self.results.windows) > before)
        self.watch(PAUSE_S)
        self.traffic.stop()
        self.traffic.send_closing()
        say(f"the last of {len(self.traffic.clicks)} clicks is sent; the last windows close")
        return self.verify()

    def crash(self) -> None:
        self.spark_job.kill()
        node = self.cluster.nodes[KILLED]
        node.kill()
        say(f"KILLED (kill -9): the driver of the job, and {KILLED}; clicks go on; both come back")
        node.start()
        self.spark_job.start()

    def until(self, what: str, is_there: Callable[[], bool]) -> None:
        until_s = time.monotonic() + STAGE_S
        while not is_there():
            self.spark_job.check()
            if time.monotonic() > until_s:
                raise TimeoutError(f"{what} did not come; see {self.spark_job.log_path}")
            self.results.take()

    def watch(self, for_s: float) -> None:
        until_s = time.monotonic() + for_s
        while time.monotonic() < until_s:
            self.results.take()

    def verify(self) -> bool:
        since_ms = now_ms() - clicks.MUCH_TOO_LATE_MS // 2
        totals = expected(self.traffic.clicks, since_ms)
        words = expected_words(self.traffic.lines)
        self.until(
            "the last windows",
            lambda: (
                totals.keys() <= dict(self.results.windows).keys() and self.results.words == words
            ),
        )
        self.spark_job.kill()
        while self.results.take(1.0):
            continue  # nothing more may be there
        return judge(self.results, totals, words, len(self.traffic.clicks))


def judge(results: Results, totals: dict[Cell, Total], words: Counter[str], sent: int) -> bool:
    found = dict(results.windows)
    duplicates = len(results.windows) - len(found)
    missing = len(totals.keys() - found.keys())
    wrong = sum(found.get(cell) != total for cell, total in totals.items()) - missing
    wrong += len(found.keys() - totals.keys())
    counted = sum(total.clicks for total in found.values())
    frequent = ", ".join(f"{word} {count}" for word, count in words.most_common(4))
    say(f"word count: {len(words)} words, {frequent}, ...")
    say(
        f"{sent} messages; {counted} clicks counted in {len(found)} rows: {missing} rows missing, "
        f"{duplicates} duplicates, {wrong} wrong"
    )
    is_good = not (missing or duplicates or wrong) and results.words == words
    say(f"{'VERIFIED: equal to' if is_good else 'NOT EQUAL to'} a plain Python computation")
    return is_good


def make_topics(bootstrap: str) -> None:
    with suiro.Admin(bootstrap) as admin:
        for name in (job.CLICKS, job.USERS, job.CLICKS_PER_WINDOW, job.LINES, job.WORD_COUNTS):
            admin.create_topic(name, partitions=2, replication_factor=3)
    with suiro.Producer(bootstrap) as producer:
        users = clicks.USERS
        keys = [user.encode() for user in users]
        countries = [country.encode() for country in users.values()]
        producer.send_many(job.USERS, countries, keys=keys).wait(30)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spark", choices=("local", "cluster"), default="local")
    given = parser.parse_args()
    if shutil.which("java") is None:
        sys.exit("Spark needs Java 17 or later, and there is no `java` here: install a JDK")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        folder = Path(name)
        layout = Layout(brokers=3, groups=1, txns=1)
        cluster = running.enter_context(LocalCluster(folder / "cluster", layout))
        say(f"a cluster is up at {cluster.bootstrap}: {', '.join(cluster.nodes)}")
        make_topics(cluster.bootstrap)
        master = "local[2]"
        if given.spark == "cluster":
            master = running.enter_context(StandaloneSpark(folder / "spark")).master
            say(f"a Spark cluster is up at {master}: a master and two workers")
        spark_job = running.enter_context(SparkJob(cluster.bootstrap, folder, master))
        results = running.enter_context(Results(cluster.bootstrap))
        traffic = running.enter_context(Traffic(cluster.bootstrap))
        is_good = Demo(cluster, spark_job, traffic, results).run()
    say("everything is stopped")
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
