"""The table of settings: what it accepts, and what it says when it refuses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from suiro.model.configs import (
    BROKER_SETTINGS,
    SETTINGS,
    TOPIC_SETTINGS,
    CleanupPolicy,
    FlushPolicy,
    Setting,
    broker_config,
    checked,
    topic_config,
)
from suiro.model.errors import InvalidConfig
from suiro.model.records import ConfigResource

TOPIC = ConfigResource.TOPIC
ROWS = [*TOPIC_SETTINGS.values(), *BROKER_SETTINGS.values()]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_row_is_complete_and_its_default_is_allowed(row: Setting) -> None:
    assert row.doc.endswith(".")
    assert row.change.endswith(".")
    assert row.parse(row.format(row.default)) == row.default
    assert (row.low is None) == (row.high is None) == (row.kind not in {int, float})


@given(row=st.sampled_from(ROWS), text=st.text(max_size=8) | st.integers().map(str))
def test_whatever_is_accepted_has_one_form(row: Setting, text: str) -> None:
    try:
        value = row.parse(text)
    except InvalidConfig:
        return
    stored = row.format(value)
    assert row.parse(stored) == value
    assert row.format(row.parse(stored)) == stored


@pytest.mark.parametrize(
    ("key", "text", "stored"),
    [
        ("retention.ms", " 42 ", "42"),
        ("retention.ms", "-1", "-1"),
        ("cleanup.policy", "delete, compact", "compact,delete"),
        ("unclean.leader.election.enable", "TRUE", "true"),
        ("min.cleanable.dirty.ratio", "0.25", "0.25"),
        ("flush.policy", "ack", "ack"),
    ],
)
def test_values_are_stored_in_one_form(key: str, text: str, stored: str) -> None:
    assert checked(TOPIC, key, text) == stored


@pytest.mark.parametrize(
    ("key", "text", "says"),
    [
        ("retention.ms", "-2", "an integer in [-1, 9223372036854775807]"),
        ("retention.ms", "1e3", "an integer in"),
        ("segment.bytes", str(1 << 31), "[16384, 2147483647]"),
        ("min.insync.replicas", "0", "[1, 1000]"),
        ("min.cleanable.dirty.ratio", "nan", "a number in [0, 1]"),
        ("unclean.leader.election.enable", "1", "true or false"),
        ("flush.policy", "always", "one of os, interval, ack"),
        ("cleanup.policy", "delete,delete", "one of delete, compact, compact,delete"),
    ],
)
def test_a_refusal_says_what_is_allowed(key: str, text: str, says: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        checked(TOPIC, key, text)
    assert key in str(caught.value)
    assert repr(text) in str(caught.value)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("retention.m", "retention.ms"),
        ("retention_ms", "retention.ms"),
        ("min.insync.replica", "min.insync.replicas"),
        ("flush.polcy", "flush.policy"),
    ],
)
def test_a_typing_error_is_met_with_the_nearest_name(key: str, meant: str) -> None:
    with pytest.raises(InvalidConfig, match=f"did you mean {meant}"):
        checked(TOPIC, key, "1")


def test_nonsense_is_met_without_a_guess() -> None:
    with pytest.raises(InvalidConfig, match="no setting 'zzz'") as caught:
        checked(TOPIC, "zzz", "1")
    assert "did you mean" not in str(caught.value)


def test_the_cluster_has_both_kinds_and_a_topic_only_its_own() -> None:
    assert checked(ConfigResource.CLUSTER, "retention.ms", "1") == "1"
    assert checked(ConfigResource.CLUSTER, "num.partitions", "3") == "3"
    with pytest.raises(InvalidConfig):
        checked(TOPIC, "num.partitions", "3")
    assert SETTINGS.keys() == set(ConfigResource)


def test_a_topic_has_its_own_settings_then_the_clusters_then_the_defaults() -> None:
    cluster = {"retention.ms": "1", "flush.policy": "ack", "num.partitions": "9"}
    config = topic_config({"retention.ms": "2", "cleanup.policy": "compact"}, cluster)
    assert config.retention_ms == 2
    assert config.flush_policy is FlushPolicy.ACK
    assert config.cleanup_policy is CleanupPolicy.COMPACT
    assert config.min_insync_replicas == 1
    assert broker_config({}, cluster).num_partitions == 9
    assert broker_config({"num.partitions": "2"}, cluster).num_partitions == 2


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(InvalidConfig, match=r"over max\.compaction\.lag\.ms=5"):
        topic_config({"min.compaction.lag.ms": "6", "max.compaction.lag.ms": "5"})
