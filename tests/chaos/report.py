"""What came of a run: a table for the terminal, and a page with timelines."""

from __future__ import annotations

import html
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.chaos.faults import Injected

GAP_S = 1.0
WIDTH, HEIGHT = 1_100, 140
RECOVERY_P50_S, RECOVERY_P99_S = 1.0, 3.0
FAULTS_MIN, KINDS_MIN = 60, 12
RECORDS_MIN, TRANSACTIONS_MIN = 1_000_000, 20_000
FULL_RUN_S = 600.0


@dataclass(frozen=True)
class ChaosReport:
    """All figures of a run; `acks` are (when, partition, latency) of acknowledged batches."""

    seconds: float
    began_s: float
    faults: list[Injected]
    acks: list[tuple[float, int, float]]
    batch_records: int
    acknowledged: int
    unknown: int
    transactions: int
    aborted: int
    rebalances: int
    copied: int
    table: int
    violations: list[str]
    on_containers: bool = False
    """Then rates and recoveries are told, and not held against the aims, which are for processes:
    a killed container takes its address along, so no connection is reset, and everybody has to
    wait until a session of 3 s is over."""

    @property
    def kinds(self) -> Counter[str]:
        return Counter(fault.kind for fault in self.faults)

    @property
    def recoveries(self) -> dict[str, list[float]]:
        found: dict[str, list[float]] = defaultdict(list)
        for fault in self.faults:
            if fault.recovery_s is not None:
                found[fault.role].append(fault.recovery_s)
        return found

    @property
    def gaps(self) -> list[float]:
        """Per partition, every time without an acknowledgement that was longer than a second."""
        by_partition: dict[int, list[float]] = defaultdict(list)
        for at_s, partition, _ in self.acks:
            by_partition[partition].append(at_s)
        return [
            after - before
            for times in by_partition.values()
            for before, after in pairwise(sorted(times))
            if after - before > GAP_S
        ]

    @property
    def missed(self) -> list[str]:
        """Which aims of a ten-minute run were missed; a shorter one is held to its share."""
        share = min(self.seconds / FULL_RUN_S, 1.0)
        aims = [
            ("faults", len(self.faults), int(FAULTS_MIN * share)),
            ("kinds of faults", len(self.kinds), int(KINDS_MIN * min(share * 2, 1))),
        ]
        if self.on_containers:
            return _too_few(aims)
        aims += [
            ("acknowledged records", self.acknowledged, int(RECORDS_MIN * share)),
            ("transactions", self.transactions, int(TRANSACTIONS_MIN * share)),
        ]
        missed = _too_few(aims)
        every = [took for times in self.recoveries.values() for took in times]
        if every and (at(every, 50) > RECOVERY_P50_S or at(every, 99) > RECOVERY_P99_S):
            missed.append(f"recovery p50 {at(every, 50):.2f} s, p99 {at(every, 99):.2f} s")
        return missed

    @property
    def is_good(self) -> bool:
        return not self.violations and not self.missed

    def text(self) -> str:
        gaps, failed = self.gaps, [fault for fault in self.faults if fault.error]
        latencies = [took for _, _, took in self.acks]
        lines = [
            f"{'ran for':32} {self.seconds:.0f} s",
            f"{'faults, kinds':32} {len(self.faults)}, {len(self.kinds)}",
            *(f"  {kind:30} {count}" for kind, count in sorted(self.kinds.items())),
            f"{'faults that could not be done':32} {len(failed)}",
            *(f"  {fault.kind} of {fault.victim}: {fault.error[:150]}" for fault in failed[:5]),
            f"{'records acknowledged, unknown':32} {self.acknowledged:,}, {self.unknown:,}",
            f"{'transactions, aborted':32} {self.transactions:,}, {self.aborted:,}",
            f"{'copied, rows of the table':32} {self.copied:,}, {self.table:,}",
            f"{'joins and leaves of the group':32} {self.rebalances:,}",
            f"{'ack p50, p99, worst':32} "
            f"{at(latencies, 50) * 1000:.1f} ms, {at(latencies, 99):.2f} s, "
            f"{max(latencies, default=0):.2f} s",
            f"{'gaps over 1 s, longest':32} {len(gaps)}, {max(gaps, default=0):.2f} s",
        ]
        for role, times in sorted(self.recoveries.items()):
            lines.append(
                f"{'recovery, ' + role:32} n {len(times)}, p50 {at(times, 50):.2f} s, "
                f"p99 {at(times, 99):.2f} s"
            )
        lines.append(f"{'violations':32} {len(self.violations)}")
        lines += [f"  {line}" for line in self.violations[:20]]
        return "\n".join([*lines, *(f"MISSED {line}" for line in self.missed)])

    def page(self) -> str:
        """HTML, all in one file."""
        rows = "".join(
            f"<tr><td>{fault.began_s - self.began_s:.1f}</td><td>{html.escape(fault.kind)}</td>"
            f"<td>{html.escape(fault.victim)}</td><td>{fault.ended_s - fault.began_s:.1f}</td>"
            f"<td>{'' if fault.recovery_s is None else f'{fault.recovery_s:.2f}'}</td></tr>"
            for fault in self.faults
        )
        return (
            "<!doctype html><meta charset=utf-8><title>Suiro chaos</title>"
            "<style>body{font:14px system-ui;margin:2em}svg{display:block;margin:.5em 0}"
            "td,th{padding:.1em .8em;text-align:left}</style>"
            f"<h1>Suiro under chaos</h1><pre>{html.escape(self.text())}</pre>"
            f"<h2>Acknowledged records per second</h2>{self._chart(self._throughput())}"
            f"<h2>Worst latency of each second, s</h2>{self._chart(self._worst())}"
            "<h2>Faults</h2><table><tr><th>at s<th>kind<th>victim<th>lasted s<th>recovery s</tr>"
            f"{rows}</table>"
        )

    def _throughput(self) -> list[float]:
        counted = Counter(int(at_s - self.began_s) for at_s, _, _ in self.acks)
        return [float(counted[s] * self.batch_records) for s in range(int(self.seconds) + 1)]

    def _worst(self) -> list[float]:
        worst: dict[int, float] = defaultdict(float)
        for at_s, _, took_s in self.acks:
            second = int(at_s - self.began_s)
            worst[second] = max(worst[second], took_s)
        return [worst[second] for second in range(int(self.seconds) + 1)]

    def _chart(self, values: Sequence[float]) -> str:
        """A line over the bars of the faults."""
        top = max(values, default=0.0) or 1.0
        x = WIDTH / max(len(values) - 1, 1)
        points = " ".join(
            f"{n * x:.1f},{HEIGHT - value / top * (HEIGHT - 12):.1f}"
            for n, value in enumerate(values)
        )
        bars = "".join(
            f"<rect x='{(f.began_s - self.began_s) * x:.1f}' y='0' height='{HEIGHT}' "
            f"width='{max((f.ended_s - f.began_s) * x, 1):.1f}' fill='#f4c7c3'>"
            f"<title>{html.escape(f.kind)}: {html.escape(f.victim)}</title></rect>"
            for f in self.faults
        )
        return (
            f"<svg width='{WIDTH}' height='{HEIGHT}'>{bars}"
            f"<polyline points='{points}' fill='none' stroke='#1a56a8'/>"
            f"<text x='4' y='12' font-size='11'>{top:,.2f}</text></svg>"
        )


def _too_few(aims: list[tuple[str, int, int]]) -> list[str]:
    return [f"{name}: {count}, at least {least}" for name, count, least in aims if count < least]


def at(values: Sequence[float], percent: float) -> float:
    """The value that so many per cent do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))] if ordered else 0.0
