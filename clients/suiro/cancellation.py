"""A cancellation that Python 3.11 loses, found again."""

from __future__ import annotations

import asyncio


def heed_cancellation() -> None:
    """Raise CancelledError if this task has been asked to end.

    To be called where a loop has caught what a TaskGroup raised and is about to go round again: if
    one of the group's tasks fails in the same moment in which the group is cancelled, the group of
    3.11 raises the failure alone, and a loop that tries again would never end.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
