"""The group checker on histories in which one thing is wrong: it says which, and no other."""

from __future__ import annotations

from suiro.verify.groups import Event, Kind, check

ENDS = {"t-0": 30}


def clean() -> list[Event]:
    """m1 reads to 10 and is killed, m2 goes on to 20 and gives up, m3 reads the rest."""
    return [
        Event(1.0, "m1", Kind.ASSIGNED, "t-0", 0),
        Event(1.5, "m1", Kind.POLLED, "t-0", 0, 10),
        Event(1.6, "m1", Kind.ACKED, "t-0", 8),
        Event(2.0, "m1", Kind.GONE),
        Event(3.0, "m2", Kind.ASSIGNED, "t-0", 8),
        Event(3.5, "m2", Kind.POLLED, "t-0", 8, 20),
        Event(3.6, "m2", Kind.ACKED, "t-0", 20),
        Event(3.8, "admin", Kind.LOOKED, "t-0", 20, began_s=3.7),
        Event(4.0, "m2", Kind.REVOKED, "t-0"),
        Event(4.5, "m3", Kind.ASSIGNED, "t-0", 20),
        Event(5.0, "m3", Kind.POLLED, "t-0", 20, 30),
    ]


def names(events: list[Event]) -> list[str]:
    return [line.split(":")[0] for line in check(events, ENDS)]


def changed(index: int, event: Event) -> list[str]:
    events = clean()
    events[index] = event
    return names(events)


def test_a_sound_history_is_sound() -> None:
    assert check(clean(), ENDS) == []


def test_two_owners() -> None:
    assert changed(8, Event(4.6, "m2", Kind.REVOKED, "t-0")) == ["G1 two owners"]


def test_an_owner_that_never_lets_go() -> None:
    events = clean()
    del events[8]
    assert names(events) == ["G1 two owners"]


def test_a_lost_partition_is_owned_until_the_last_records() -> None:
    lost = clean()
    lost[8] = Event(4.7, "m2", Kind.LOST, "t-0")
    assert names(lost) == []
    late = [*lost, Event(4.6, "m2", Kind.POLLED, "t-0", 20, 21)]
    assert names(late) == ["G1 two owners"]


def test_records_for_somebody_who_is_no_owner() -> None:
    assert names([*clean(), Event(4.2, "m2", Kind.POLLED, "t-0", 20, 21)]) == ["G1 not the owner"]


def test_an_owner_that_jumps() -> None:
    events = [*clean(), Event(5.1, "m3", Kind.POLLED, "t-0", 31, 32)]
    assert names(events) == ["P8 jump"]


def test_a_commit_that_went_back() -> None:
    begins = clean()
    begins[9] = Event(4.5, "m3", Kind.ASSIGNED, "t-0", 19)
    begins[10] = Event(5.0, "m3", Kind.POLLED, "t-0", 19, 30)
    assert names(begins) == ["G2 went back"]
    looked = Event(3.8, "admin", Kind.LOOKED, "t-0", 19, began_s=3.7)
    assert changed(7, looked) == ["G2 went back"]
    before = Event(3.8, "admin", Kind.LOOKED, "t-0", 8, began_s=3.55)
    assert changed(7, before) == []


def test_what_nobody_was_given() -> None:
    events = clean()
    events[9] = Event(4.5, "m3", Kind.ASSIGNED, "t-0", 21)
    events[10] = Event(5.0, "m3", Kind.POLLED, "t-0", 21, 30)
    assert names(events) == ["G5 unseen"]
    assert names(clean()[:-1]) == ["G5 unseen"]


def test_errors_of_the_application() -> None:
    failed = Event(6.0, "m3", Kind.FAILED, note="no such thing")
    assert check([*clean(), failed], ENDS) == ["error of m3: no such thing"]
