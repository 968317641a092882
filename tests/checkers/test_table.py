"""The table's checker on planted histories: it finds what is wrong, and nothing else."""

from __future__ import annotations

from suiro.verify.table import Table


def written(*versions: str) -> Table:
    """`1`, `2x` (a tombstone), `3?` (unknown): versions of one key."""
    table = Table()
    for text in versions:
        version = table.next(b"k", deletes="x" in text)
        if "?" not in text:
            table.acknowledge(b"k", version)
    return table


def test_the_newest_acknowledged_value_is_enough() -> None:
    table = written("1", "2")
    table.see(7, b"k", b"2:")
    assert table.check() == []


def test_an_older_value_is_a_loss() -> None:
    table = written("1", "2")
    table.see(7, b"k", b"1:")
    assert "P16" in table.check()[0]


def test_no_value_is_a_loss_unless_it_was_deleted() -> None:
    assert "P16" in written("1").check()[0]
    assert written("1", "2x").check() == []
    assert written("1", "2x?").check() == []


def test_a_value_that_came_back_after_its_tombstone_is_a_loss() -> None:
    table = written("1", "2x")
    table.see(3, b"k", b"1:")
    assert "P16" in table.check()[0]


def test_an_unknown_version_may_be_there_or_not() -> None:
    for found in (b"1:", b"2:"):
        table = written("1", "2?")
        table.see(3, b"k", found)
        assert table.check() == []


def test_versions_go_forward_and_are_not_made_up() -> None:
    table = written("1", "2")
    table.see(3, b"k", b"2:")
    table.see(4, b"k", b"1:")
    table.see(5, b"other", b"1:")
    assert [line[:2] for line in table.check()[:2]] == ["P4", "P6"]
