"""Options: what is understood, and what is said of what is not."""

from __future__ import annotations

import pytest
from pyspark_suiro.options import (
    CLIENT_SETTINGS,
    EARLIEST,
    LATEST,
    NAMES,
    AtTime,
    ByPartition,
    Everywhere,
    Matching,
    Partitions,
    SourceOptions,
    Topics,
    check_batch,
    check_stream,
    parse_source,
)
from suiro.model.errors import InvalidSetting
from suiro.model.ids import TopicPartition


def parse(**given: str) -> SourceOptions:
    return parse_source({"subscribe": "clicks", **given})


def test_what_is_not_said_has_a_default() -> None:
    options = parse()
    assert options.bootstrap is None
    assert options.selection == Topics(("clicks",))
    assert options.starting is None
    assert options.ending is None
    assert options.fail_on_data_loss
    assert not options.include_headers
    assert options.isolation == "read_committed"
    assert options.max_offsets_per_trigger is None
    assert (options.min_partitions, options.max_records_per_partition) == (0, 0)


def test_names_arrive_in_lower_case() -> None:
    options = parse_source({"subscribepattern": "a.*", "failondataloss": "FALSE"})
    assert options.selection == Matching("a.*")
    assert not options.fail_on_data_loss


def test_three_ways_to_say_what_to_read() -> None:
    assert parse_source({"subscribe": " a, b ,a"}).selection == Topics(("a", "b"))
    assert parse_source({"subscribePattern": "x+"}).selection == Matching("x+")
    assigned = parse_source({"assign": '{"b":[1,0],"a":[2]}'}).selection
    assert assigned == Partitions(
        (TopicPartition("a", 2), TopicPartition("b", 0), TopicPartition("b", 1))
    )


def test_positions() -> None:
    first = TopicPartition("clicks", 0)
    assert parse(startingOffsets="Earliest").starting == Everywhere(EARLIEST)
    assert parse(endingOffsets="latest").ending == Everywhere(LATEST)
    assert parse(startingOffsets='{"clicks":{"0":7}}').starting == ByPartition({first: 7})
    assert parse(endingOffsets='{"clicks":{"0":-1}}').ending == ByPartition({first: LATEST})
    assert parse(startingTimestamp="12").starting == AtTime(12, {})
    by_time = parse(endingOffsetsByTimestamp='{"clicks":{"0":9}}').ending
    assert by_time == AtTime(None, {first: 9})


def test_numbers_and_the_clients_settings() -> None:
    options = parse(
        maxOffsetsPerTrigger="5",
        minPartitions="6",
        maxRecordsPerPartition="7",
        includeHeaders="true",
        isolation="read_uncommitted",
        **{"suiro.bootstrap.servers": "there:1", "suiro.fetch.max.bytes": "1024"},
    )
    assert options.max_offsets_per_trigger == 5
    assert (options.min_partitions, options.max_records_per_partition) == (6, 7)
    assert options.include_headers
    assert options.bootstrap == "there:1"
    settings = options.consumer_settings()
    assert settings.fetch_max_bytes == 1024
    assert settings.isolation == "read_uncommitted"
    assert settings.auto_offset_reset == "none"


@pytest.mark.parametrize(("name", "kind"), CLIENT_SETTINGS.items())
def test_settings_of_the_consumer_are_understood(name: str, kind: type) -> None:
    options = parse(**{f"suiro.{name.replace('_', '.')}": "70000000"})
    assert options.client == ((name.replace("_", "."), kind("70000000")),)
    assert options.consumer_settings() != parse().consumer_settings()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"subscrib": "x"}, "did you mean 'subscribe'"),
        ({"kafka.bootstrap.servers": "x"}, "called 'bootstrap'"),
        ({"kafka.fetch.max.bytes": "1"}, "'suiro.fetch.max.bytes'"),
        ({"path": "clicks"}, "not in load"),
        ({"zzz": "1"}, "known are bootstrap, subscribe"),
        ({"suiro.fetch.max.byte": "1"}, "did you mean 'suiro.fetch.max.bytes'"),
        ({"suiro.fetch.max.bytes": "many"}, "must be a number"),
        ({"suiro.acks": "all"}, "known are suiro.client.id"),
        ({"assign": '{"clicks":[0]}'}, "'subscribe' and 'assign' was given"),
        ({"startingOffsets": "soon"}, "'earliest', 'latest' or JSON"),
        ({"startingOffsets": '{"clicks":{"0":-3}}'}, "-2 is earliest"),
        ({"startingOffsets": '{"clicks":[1]}'}, "needs an object of partitions"),
        ({"startingOffsets": "{"}, "is not JSON"),
        ({"startingTimestamp": "yesterday"}, "whole number"),
        ({"startingTimestamp": "1", "startingOffsets": "latest"}, "exclude each other"),
        ({"failOnDataLoss": "maybe"}, "true or false"),
        ({"maxOffsetsPerTrigger": "0"}, "1 or more"),
        ({"kafka.group.id": "g"}, "called 'groupId'"),
        ({"minPartitions": "-1"}, "whole number"),
        ({"isolation": "serial"}, "'read_committed' or 'read_uncommitted'"),
        ({"valueFormat": "xml"}, "'json' or 'avro' or 'protobuf' or 'arrow'"),
        ({"valueFormat": "json", "valueDescriptor": "x"}, "for valueFormat 'protobuf'"),
        ({"valueSchema": "a INT"}, "without valueFormat"),
    ],
)
def test_what_is_wrong_is_said_with_what_would_be_right(given: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        parse(**given)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "none was given"),
        ({"subscribe": " "}, "'subscribe' is empty"),
        ({"subscribePattern": "("}, "is no pattern"),
        ({"assign": "{}"}, "names no partition"),
        ({"assign": '{"a":[-1]}'}, "a list of partitions"),
        ({"assign": "[1]"}, "a JSON object"),
    ],
)
def test_what_to_read_must_be_said_once(given: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        parse_source(given)
    assert said in str(caught.value)


def test_a_batch_that_could_only_be_empty_is_refused() -> None:
    with pytest.raises(InvalidSetting):
        check_batch(parse(startingOffsets="latest"))
    with pytest.raises(InvalidSetting):
        check_batch(parse(endingOffsets="earliest"))
    check_batch(parse())


def test_a_stream_has_no_end() -> None:
    with pytest.raises(InvalidSetting, match="availableNow"):
        check_stream(parse(endingOffsets="latest"))
    check_stream(parse(startingOffsets="latest"))


def test_every_option_is_in_the_table_of_the_docs() -> None:
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs" / "spark.md").read_text()
    assert [name for name in NAMES if f"`{name}`" not in page] == []
