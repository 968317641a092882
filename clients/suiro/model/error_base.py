"""What every error is made of: a code that travels, and the root of the tree in `errors`."""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar


class ErrorCode(IntEnum):
    """What travels; `common.proto` has the same list, and a test compares the two."""

    OK = 0
    INTERNAL = 1
    INVALID_REQUEST = 2
    UNSUPPORTED_VERSION = 3
    TIMED_OUT = 4
    UNAVAILABLE = 5
    OVERLOADED = 6
    SHUTTING_DOWN = 7
    UNAUTHENTICATED = 8
    UNAUTHORIZED = 9

    CORRUPT_BATCH = 20
    BATCH_TOO_LARGE = 21

    UNKNOWN_TOPIC_OR_PARTITION = 30
    TOPIC_EXISTS = 31
    INVALID_TOPIC = 32
    INVALID_CONFIG = 33
    NOT_LEADER = 34
    LEADER_NOT_AVAILABLE = 35
    FENCED_LEADER_EPOCH = 36
    UNKNOWN_LEADER_EPOCH = 37
    NOT_ENOUGH_REPLICAS = 38
    OFFSET_OUT_OF_RANGE = 39
    OFFSET_NOT_AVAILABLE = 40
    STORAGE_FAILED = 41
    DISK_FULL = 42
    TOPIC_ID_MISMATCH = 43
    POSITION_TRUNCATED = 44
    INVALID_REPLICATION_FACTOR = 45
    REASSIGNMENT_IN_PROGRESS = 46
    NO_REASSIGNMENT = 47

    OUT_OF_ORDER_SEQUENCE = 50
    UNKNOWN_PRODUCER = 51
    PRODUCER_FENCED = 52

    INVALID_TRANSACTION = 60
    TRANSACTION_TIMED_OUT = 61
    CONCURRENT_TRANSACTION = 62
    TRANSACTION_ABORTED = 63
    ALREADY_COMMITTED = 64
    STALE_BATCH = 65

    NOT_COORDINATOR = 70
    COORDINATOR_LOADING = 71
    STALE_OWNER_EPOCH = 72

    UNKNOWN_MEMBER = 80
    STALE_MEMBER_EPOCH = 81
    FENCED_INSTANCE = 82
    GROUP_NOT_EMPTY = 83
    UNKNOWN_GROUP = 84
    UNSTABLE_OFFSET = 85
    UNSUPPORTED_ASSIGNOR = 86

    NOT_CONTROLLER = 90
    STALE_BROKER_EPOCH = 91
    STALE_PARTITION_EPOCH = 92
    CLUSTER_ID_MISMATCH = 93
    NOT_FORMATTED = 94
    DUPLICATE_NODE = 95
    MEMBERSHIP_CHANGE_PENDING = 96
    UNKNOWN_BROKER = 97
    BROKER_FENCED = 98

    DELIVERY_TIMED_OUT = 100
    BUFFER_FULL = 101
    CLIENT_CLOSED = 102
    NO_POSITION = 103
    INVALID_SETTING = 104


Hint = str | int


class SuiroError(Exception):
    """The root: catch this to catch everything that Suiro raises on purpose.

    >>> try:
    ...     suiro.Consumer(max_poll_record=10)
    ... except suiro.SuiroError as error:
    ...     print(error)
    there is no setting 'max_poll_record': did you mean 'max_poll_records'?...
    """

    code: ClassVar[ErrorCode] = ErrorCode.INTERNAL
    retriable: ClassVar[bool] = False
    advice: ClassVar[str] = ""

    def __init__(self, message: str, **hints: Hint) -> None:
        super().__init__(message)
        self.message = message
        self.hints: dict[str, Hint] = dict(hints)

    def __str__(self) -> str:
        return f"{self.message}. {self.advice}" if self.advice else self.message

    def hint_int(self, name: str) -> int | None:
        """A hint as a number, or None where the server gave none.

        >>> suiro.SuiroError("too far", end=7).hint_int("end")
        7
        """
        value = self.hints.get(name)
        return None if value is None else int(value)
