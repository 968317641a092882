"""The bank's checker sees what it is there to see."""

from __future__ import annotations

from random import Random

import pytest
from suiro.verify.bank import Book, Ledger, Part, transfer

ONE = [Part(0, 1, nth, (-5, 5)) for nth in range(2)]
TWO = [Part(0, 2, nth, (-7, 3, 4)) for nth in range(3)]


def ledger(*seen: tuple[int, int, Part]) -> Ledger:
    made = Ledger()
    for partition, offset, part in seen:
        made.see(partition, offset, part.encode(), now_s=float(offset))
    made.close()
    return made


WHOLE = ((0, 0, ONE[0]), (1, 0, ONE[1]), (0, 1, TWO[0]), (1, 1, TWO[1]), (2, 9, TWO[2]))


def test_whole_transfers_are_right_and_their_halves_are_timed() -> None:
    seen = ledger(*WHOLE)
    assert seen.violations == []
    assert seen.whole == {(0, 1), (0, 2)}
    assert seen.half_s_max == 8.0
    assert Book(committed={(0, 1)}, unknown={(0, 2)}).check([seen]) == []


@pytest.mark.parametrize(
    ("seen", "word"),
    [
        (WHOLE[:1], "half"),
        ((*WHOLE, (1, 2, TWO[1])), "duplicate"),
        ((WHOLE[0], (0, 5, ONE[0])), "duplicate"),
        ((WHOLE[0], (0, 0, ONE[1])), "offset went back"),
        ((WHOLE[2], (0, 3, ONE[0])), "order"),
        (((0, 0, Part(0, 1, 0, (-5, 6))), (1, 0, Part(0, 1, 1, (-5, 6)))), "money"),
    ],
)
def test_what_one_reader_sees_wrong(seen: tuple[tuple[int, int, Part], ...], word: str) -> None:
    assert any(word in line for line in ledger(*seen).violations)


@pytest.mark.parametrize(
    ("book", "word"),
    [
        (Book(committed={(0, 1), (0, 2), (0, 3)}), "lost"),
        (Book(committed={(0, 1)}, aborted={(0, 2)}), "aborted, and seen"),
        (Book(committed={(0, 1)}), "nobody wrote"),
    ],
)
def test_what_writers_know_better(book: Book, word: str) -> None:
    assert any(word in line for line in book.check([ledger(*WHOLE)]))


def test_readers_that_differ() -> None:
    book = Book(committed={(0, 1)}, unknown={(0, 2)})
    assert any("differs" in line for line in book.check([ledger(*WHOLE), ledger(*WHOLE[:2])]))


def test_a_transfer_moves_money_and_makes_none() -> None:
    for number in range(50):
        parts = [part for _, part in transfer(Random(number), 3, number, accounts=5)]
        assert sum(parts[0].amounts) == 0
        assert [part.nth for part in parts] == list(range(len(parts[0].amounts)))
        assert Part.decode(parts[0].encode()) == parts[0]
