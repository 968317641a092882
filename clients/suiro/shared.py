"""Shared transactions for ordinary threads, such as Spark's Python workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from suiro.aio import shared as aio_shared
from suiro.loop_thread import LoopThread
from suiro.producer import Producer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from suiro.aio.shared import Outcome, SharedBatch


class SharedWriter(Producer):
    """A producer whose records are part of a shared transaction.

    >>> batch = suiro.SharedBatch("query-1", sequence=7, attempt="first try")
    >>> with suiro.SharedWriter(batch, "task-3") as writer:
    ...     handle = writer.send("orders", b"two apples")
    ...     producer_id = writer.prepare()
    >>> with suiro.SharedTransactions() as shared:
    ...     shared.commit(batch, [producer_id])
    <Outcome.COMMITTED: 'committed'>
    >>> suiro.SharedWriter(batch, "task-4")
    Traceback (most recent call last):
    suiro.model.errors.AlreadyCommitted: ...

    Making one raises AlreadyCommitted when there is nothing left to write, StaleBatch when a later
    batch of the name was committed, and TransactionAborted when this attempt is over. A writer's
    name is used once. A writer that does not say `prepare` is aborted with the others' commit.
    """

    def __init__(
        self,
        batch: SharedBatch,
        writer: str,
        bootstrap: str | None = None,
        *,
        timeout_ms: int = aio_shared.SHARED_TIMEOUT_MS,
        **given: Any,
    ) -> None:
        self._writer = aio_shared.SharedWriter(
            batch, writer, bootstrap, timeout_ms=timeout_ms, **given
        )
        self._open(self._writer)

    @property
    def producer_id(self) -> int:
        """What the commit has to name for this writer to count.

        >>> batch = suiro.SharedBatch("query-1", sequence=7, attempt="first try")
        >>> with suiro.SharedWriter(batch, "task-3") as writer:
        ...     writer.prepare() == writer.producer_id
        True
        """
        return self._writer.producer_id

    def prepare(self) -> int:
        """Everything is sent: wait until it is stored, and say so; the producer id for the commit.

        Raises TransactionAborted if something could not be stored, or if the transaction is over.

        >>> batch = suiro.SharedBatch("query-1", sequence=7, attempt="first try")
        >>> with suiro.SharedWriter(batch, "task-3") as writer:
        ...     handle = writer.send("orders", b"two apples")
        ...     producer_id = writer.prepare()
        >>> handle.succeeded()
        True
        """
        return self._loop.run(self._writer.prepare())


class SharedTransactions:
    """For whoever leads the writers: decides, and asks what was decided.

    >>> batch = suiro.SharedBatch("query-1", sequence=7, attempt="first try")
    >>> with suiro.SharedWriter(batch, "task-3") as writer:
    ...     producer_id = writer.prepare()
    >>> with suiro.SharedTransactions() as shared:
    ...     outcome = shared.commit(batch, [producer_id])
    ...     shared.last_committed("query-1")
    7
    """

    def __init__(self, bootstrap: str | None = None) -> None:
        self._shared = aio_shared.SharedTransactions(bootstrap)
        self._loop = LoopThread()
        try:
            self._loop.run(self._shared.__aenter__())
        except BaseException:
            self._loop.close()
            raise

    def commit(self, batch: SharedBatch, producer_ids: Iterable[int]) -> Outcome:
        """These writers commit, all others of the attempt abort, and the sequence is remembered: in
        one decision. To be asked again after a failure, by anybody.

        Raises TransactionAborted if the attempt is over, StaleBatch if a later batch was committed,
        InvalidTransaction if a writer that should count has not said `prepare`.

        >>> batch = suiro.SharedBatch("query-1", sequence=7, attempt="first try")
        >>> with suiro.SharedWriter(batch, "task-3") as writer:
        ...     producer_id = writer.prepare()
        >>> with suiro.SharedTransactions() as shared:
        ...     first = shared.commit(batch, [producer_id])
        ...     again = shared.commit(batch, [producer_id])
        >>> str(first), str(again)
        ('committed', 'already committed')
        """
        return self._loop.run(self._shared.commit(batch, producer_ids))

    def abort(self, batch: SharedBatch) -> Outcome:
        """End the attempt; without one, whatever attempt of the sequence is open. Undoes nothing
        that was committed.

        >>> batch = suiro.SharedBatch("query-1", sequence=7, attempt="first try")
        >>> with suiro.SharedTransactions() as shared:
        ...     shared.abort(batch)
        <Outcome.ABORTED: 'aborted'>
        """
        return self._loop.run(self._shared.abort(batch))

    def last_committed(self, name: str) -> int | None:
        """The newest committed sequence of the name; None if there is none, or all is forgotten.

        >>> with suiro.SharedTransactions() as shared:
        ...     print(shared.last_committed("query-1"))
        None
        """
        return self._loop.run(self._shared.last_committed(name))

    def wait_completed(self, name: str) -> None:
        """Until readers are shown what was decided: that is a moment after the decision.

        Raises InvalidTransaction for an unknown name, and TimedOut; what was decided stays so.

        >>> batch = suiro.SharedBatch("query-3", sequence=0, attempt="first")
        >>> with suiro.SharedTransactions() as shared:
        ...     outcome = shared.commit(batch, [])
        ...     shared.wait_completed("query-3")
        """
        self._loop.run(self._shared.wait_completed(name))

    def close(self) -> None:
        """Let go of everything.

        >>> suiro.SharedTransactions().close()
        """
        try:
            self._loop.run(self._shared.close())
        finally:
            self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
