"""What an append is answered: the place of the very record that is stored, and nothing for what is
not there any more.
"""

from __future__ import annotations

from suiro.model.ids import LeaderEpoch, Offset

from tests.sim.disk import ForgetfulFs
from tests.unit.log.kit import Place, batch

PRODUCER = 7


def test_each_batch_is_answered_with_its_own_first_offset() -> None:
    log = Place(ForgetfulFs()).open()
    log.append_as_leader([batch(3)], LeaderEpoch(0), 0)
    info = log.append_as_leader([batch(2), batch(1)], LeaderEpoch(0), 0)
    assert info.base_offsets == (3, 5)


def test_a_retry_of_what_was_cut_is_stored_again() -> None:
    """Dedup that outlives its data answers `stored` for what is nowhere (row 39)."""
    log = Place(ForgetfulFs()).open()
    first, second = (batch(1, producer=(PRODUCER, 0, number)) for number in (0, 1))
    log.append_as_leader([first, second], LeaderEpoch(0), 0)
    log.truncate_to(Offset(1), 0)
    info = log.append_as_leader([second], LeaderEpoch(1), 0)
    assert info.base_offsets == (1,)
    assert log.log_end == 2
