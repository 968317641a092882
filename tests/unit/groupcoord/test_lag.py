"""How far groups are behind, by group and topic."""

from __future__ import annotations

from suiro.model.ids import TopicPartition

from cluster.groupcoord.lag import lags

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_lags_are_summed_over_the_partitions_of_a_topic() -> None:
    committed = {"g": {A0: 4, A1: 1, B0: 7}, "h": {A0: 10}}
    ends = {A0: 10, A1: 1, B0: 9}
    assert lags(committed, ends) == {("g", "a"): 6, ("g", "b"): 2, ("h", "a"): 0}


def test_an_end_that_is_not_known_is_no_lag_of_zero() -> None:
    assert lags({"g": {A0: 4, B0: 7}}, {A0: 5}) == {("g", "a"): 1}


def test_an_offset_behind_the_end_that_was_heard_is_no_negative_lag() -> None:
    assert lags({"g": {A0: 4}}, {A0: 3}) == {("g", "a"): 0}
