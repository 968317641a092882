"""What a controller counts; the names and texts are in `cluster.host.metrics`."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from suiro.model.image import ClusterImage

    from cluster.controller_quorum.conf import Member
    from cluster.host.clock import Clock
    from cluster.host.metrics import Metrics


class QuorumMetrics:
    """Turns what happens in the quorum into figures."""

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._clock = clock
        self._active = metrics.active_controllers.of()
        self._elections = metrics.elections.of()
        self._election_seconds = metrics.election_seconds.of()
        self._election_seconds_max = metrics.election_seconds_max.of()
        self._commit_seconds = metrics.quorum_commit_seconds.of()
        self._sync_seconds = metrics.quorum_sync_seconds.of()
        self._log_end = metrics.quorum_log_end.of()
        self._snapshot_age = metrics.quorum_snapshot_age_seconds.of()
        self._brokers = metrics.brokers_active.of()
        self._fenced = metrics.brokers_fenced.of()
        self._unclean = metrics.unclean_elections.of()
        self._imbalance = metrics.leader_imbalance_ratio.of()
        self._offline = metrics.partitions_offline.of()
        self._reassigning = metrics.reassigning_partitions.of()
        self._leader: Member | None = None
        self._term = 0
        self._leaderless_since_ms: float | None = None
        self._proposed: deque[tuple[int, float]] = deque()
        self._snapshot_at_ms = clock.monotonic_ms()

    def on_leader(self, leader: Member | None, term: int) -> None:
        """After each fact: who leads, as far as this member knows. An election lasts, for it, from
        when it misses a leader to when it knows one.
        """
        if leader == self._leader and term == self._term:
            return
        now_ms = self._clock.monotonic_ms()
        if leader is None:
            if self._leaderless_since_ms is None:
                self._leaderless_since_ms = now_ms
        elif leader != self._leader or term != self._term:
            self._elections.add()
            if self._leaderless_since_ms is not None:
                seconds = (now_ms - self._leaderless_since_ms) / 1000
                self._election_seconds.observe(seconds)
                self._election_seconds_max.set(max(seconds, self._election_seconds_max.value))
                self._leaderless_since_ms = None
        self._leader, self._term = leader, term

    def on_serving(self, serving: bool) -> None:
        self._active.set(int(serving))

    def on_proposed(self, index: int) -> None:
        self._proposed.append((index, self._clock.monotonic_ms()))

    def on_committed(self, index: int) -> None:
        self._log_end.set(index + 1)
        now_ms = self._clock.monotonic_ms()
        while self._proposed and self._proposed[0][0] <= index:
            self._commit_seconds.observe((now_ms - self._proposed.popleft()[1]) / 1000)

    def on_deposed(self) -> None:
        self._proposed.clear()

    def on_stored(self, took_ms: float) -> None:
        self._sync_seconds.observe(took_ms / 1000)

    def on_snapshot(self) -> None:
        self._snapshot_at_ms = self._clock.monotonic_ms()

    def on_unclean_election(self) -> None:
        self._unclean.add()

    def refresh(self, image: ClusterImage) -> None:
        """What has to be looked at from time to time."""
        self._snapshot_age.set((self._clock.monotonic_ms() - self._snapshot_at_ms) / 1000)
        fenced = sum(1 for node in image.nodes.values() if node.fenced)
        self._fenced.set(fenced)
        self._brokers.set(len(image.nodes) - fenced)
        self._imbalance.set(len(image.not_preferred) / max(1, image.partition_count))
        self._offline.set(len(image.leaderless))
        self._reassigning.set(len(image.reassigning))
