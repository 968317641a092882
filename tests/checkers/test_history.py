"""The history checker on histories in which one thing is wrong: it says which, and no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from suiro.verify.history import History, Outcome, Read, Send, check
from suiro.verify.payload import Payload, decode

if TYPE_CHECKING:
    from collections.abc import Callable

LATER_S = 100.0


def payload(sequence: int, producer: int = 1, partition: int = 0) -> Payload:
    return Payload("run", "t", partition, producer, sequence)


def read(offset: int, value: bytes, reader: str = "final", partition: int = 0) -> Read:
    return Read(reader, "t", partition, offset, value)


def clean() -> History:
    """Ten records of two producers, one after the other, and a reader before the last one."""
    sent = [payload(number // 2, 1 + number % 2) for number in range(10)]
    return History(
        sends=[Send(p, Outcome.OK, at, float(at), at + 0.5) for at, p in enumerate(sent)],
        reads=[
            *(read(at, p.encode(b"xyz"), "early") for at, p in enumerate(sent[:4])),
            *(read(at, p.encode(b"xyz")) for at, p in enumerate(sent)),
        ],
    )


def last_send(history: History) -> Send:
    return history.sends[-1]


def lose(history: History) -> None:
    history.reads.pop()


def move(history: History) -> None:
    history.sends[-1] = last_send(history)._replace(offset=8)


def answer_twice(history: History) -> None:
    wrong = history.reads[-2]._replace(reader="early", offset=4)
    history.reads.insert(4, wrong)


def duplicate(history: History) -> None:
    history.reads.append(read(10, history.reads[-1].value))


def swap(history: History) -> None:
    """Two records of one producer whose sends overlapped."""
    first, second = history.sends[6], history.sends[8]
    history.sends[6] = first._replace(offset=8, answered_s=LATER_S)
    history.sends[8] = second._replace(offset=6, invoked_s=6.0)
    at = len(history.reads) - 10
    one, two = history.reads[at + 6], history.reads[at + 8]
    history.reads[at + 6] = one._replace(value=two.value)
    history.reads[at + 8] = two._replace(value=one.value)


def overtake(history: History) -> None:
    """One that was sent after the answer of another stands before it; of different producers."""
    late = history.sends[6]
    history.sends[6] = late._replace(invoked_s=LATER_S, answered_s=LATER_S + 1)


def invent(history: History) -> None:
    history.reads.append(read(10, payload(77).encode()))


def misplace(history: History) -> None:
    stray = payload(9, 3, partition=1)
    history.sends.append(Send(stray, Outcome.INFO, -1, 0.0, 1.0))
    history.reads.append(read(10, stray.encode()))


def damage(history: History) -> None:
    history.reads.append(read(10, b"x" + history.reads[-1].value))


def revive(history: History) -> None:
    history.sends[3] = history.sends[3]._replace(outcome=Outcome.FAIL, offset=-1)


def skip(history: History) -> None:
    del history.reads[2]


def go_back(history: History) -> None:
    history.reads.insert(4, history.reads[1])


PLANTED: list[tuple[Callable[[History], None], set[str]]] = [
    (lose, {"lost_write"}),
    (move, {"divergent_offset", "lost_write", "real_time"}),
    (answer_twice, {"divergent_offset"}),
    (duplicate, {"duplicate"}),
    (swap, {"non_monotonic_send"}),
    (overtake, {"real_time"}),
    (invent, {"invented"}),
    (misplace, {"misplaced"}),
    (damage, {"corrupt"}),
    (revive, {"failed_read"}),
    (skip, {"skipped"}),
    (go_back, {"non_monotonic_poll"}),
]


def test_a_clean_history_is_clean() -> None:
    assert check(clean()) == []


@pytest.mark.parametrize(
    ("plant", "names"), PLANTED, ids=lambda item: getattr(item, "__name__", "")
)
def test_what_is_wrong_is_named(plant: Callable[[History], None], names: set[str]) -> None:
    history = clean()
    plant(history)
    assert {anomaly.name for anomaly in check(history)} == names


def test_what_nobody_knows_may_be_there_or_not() -> None:
    history = clean()
    history.sends.append(Send(payload(5, 1), Outcome.INFO, -1, 50.0, 60.0))
    assert check(history) == []
    history.reads.append(read(10, payload(5, 1).encode()))
    assert check(history) == []


@pytest.mark.parametrize("at", range(0, 40, 3))
def test_a_payload_with_another_byte_is_no_payload(at: int) -> None:
    value = bytearray(payload(3).encode(b"filler"))
    assert decode(bytes(value)) == payload(3)
    value[at % len(value)] ^= 1
    with pytest.raises(ValueError, match="CRC"):
        decode(bytes(value))
