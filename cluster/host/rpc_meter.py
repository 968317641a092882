"""Counts the calls of one method: those open, how they ended, how long unary ones took."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from suiro.model.error_base import ErrorCode, SuiroError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.host.metrics import Counter, Metrics


class RpcMeter:
    """Of `/suiro.v1.Broker/Fetch`, under the name `Broker/Fetch`."""

    def __init__(self, metrics: Metrics, path: str) -> None:
        self._name = path.rpartition(".v1.")[2].lstrip("/")
        self._rpcs = metrics.rpcs
        self._open = metrics.rpcs_open.of(self._name)
        self._seconds = metrics.rpc_seconds.of(self._name)
        self._counters: dict[ErrorCode, Counter] = {}

    @contextmanager
    def open(self) -> Iterator[None]:
        self._open.add()
        try:
            yield
        finally:
            self._open.add(-1)

    @contextmanager
    def timed(self) -> Iterator[None]:
        began_s = time.perf_counter()
        with self.open():
            try:
                yield
            finally:
                self._seconds.observe(time.perf_counter() - began_s)

    def ended(self, error: Exception | None) -> None:
        """What is no error of ours is a defect, and counted as such."""
        code = ErrorCode.OK if error is None else ErrorCode.INTERNAL
        if isinstance(error, SuiroError):
            code = error.code
        counter = self._counters.get(code)
        if counter is None:
            counter = self._counters[code] = self._rpcs.of(self._name, code.name)
        counter.add()
