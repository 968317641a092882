"""The readers against a real cluster, driven as Spark drives them, without Spark: rows, ranges,
steps of a stream, transactions, and what happens to topics meanwhile.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest
import suiro
from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import LongType, StructType
from pyspark_suiro.errors import DataLoss
from pyspark_suiro.lag import lag
from pyspark_suiro.offsets import Range
from pyspark_suiro.reader import BatchReader, FilteringBatchReader, RangePartition
from suiro.model.errors import (
    GroupNotEmpty,
    InvalidSetting,
    Unavailable,
    UnknownTopicOrPartition,
)
from suiro.wall_clock import wall_clock_ms

from tests.spark.kit import (
    SCHEMA,
    SCHEMA_WITH_HEADERS,
    Stream,
    batch,
    committed,
    new_topic,
    options,
    read,
    send,
    values,
)

if TYPE_CHECKING:
    from cluster.local_cluster import LocalCluster

pytestmark = pytest.mark.cluster


def numbered(start: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(start, end)]


# -- batches --------------------------------------------------------------------------------------


def test_rows_have_everything_of_their_records(cluster: LocalCluster) -> None:
    topic = new_topic(cluster, "whole")
    with suiro.Producer(cluster.bootstrap) as producer:
        producer.send(topic, b"a", key=b"k", timestamp_ms=1_700_000_000_123)
        producer.send(topic, None, headers=[("h", b"1"), ("h", None)], timestamp_ms=5)
    table = batch(options(cluster, topic, includeHeaders="true"), SCHEMA_WITH_HEADERS)
    first, second = table.to_pylist()
    assert (first["key"], first["value"], first["topic"]) == (b"k", b"a", topic)
    assert (first["partition"], first["offset"], first["timestampType"]) == (0, 0, 0)
    assert first["timestamp"].timestamp() == 1_700_000_000.123
    assert first["headers"] == []
    assert (second["key"], second["value"], second["offset"]) == (None, None, 1)
    assert second["headers"] == [{"key": "h", "value": b"1"}, {"key": "h", "value": None}]


def test_positions_by_name_number_and_time(cluster: LocalCluster) -> None:
    topic = new_topic(cluster, "positions")
    with suiro.Producer(cluster.bootstrap) as producer:
        for number in range(10):
            producer.send(topic, b"%d" % number, timestamp_ms=1000 + number)
    for given, expected in [
        ({}, numbered(0, 10)),
        ({"startingOffsets": "earliest", "endingOffsets": "latest"}, numbered(0, 10)),
        ({"startingOffsets": f'{{"{topic}":{{"0":4}}}}'}, numbered(4, 10)),
        ({"startingOffsets": f'{{"{topic}":{{"0":-2}}}}'}, numbered(0, 10)),
        ({"endingOffsets": f'{{"{topic}":{{"0":3}}}}'}, numbered(0, 3)),
        ({"endingOffsets": f'{{"{topic}":{{"0":99}}}}'}, numbered(0, 10)),
        ({"startingTimestamp": "1006"}, numbered(6, 10)),
        ({"endingTimestamp": "1002"}, numbered(0, 2)),
        ({"startingTimestamp": "5000"}, []),
        ({"startingOffsetsByTimestamp": f'{{"{topic}":{{"0":1008}}}}'}, numbered(8, 10)),
        ({"endingOffsetsByTimestamp": f'{{"{topic}":{{"0":1001}}}}'}, numbered(0, 1)),
    ]:
        assert values(batch(options(cluster, topic, **given))) == expected, given


def test_what_to_read_by_name_pattern_and_partition(cluster: LocalCluster) -> None:
    for name in ("pick-a", "pick-b"):
        new_topic(cluster, name, partitions=2)
        for partition in (0, 1):
            send(cluster, name, [f"{name}-{partition}".encode()], partition)
    where = {"bootstrap": cluster.bootstrap}
    everything = [b"pick-a-0", b"pick-a-1", b"pick-b-0", b"pick-b-1"]
    assert values(batch({**where, "subscribe": "pick-b,pick-a"})) == everything
    assert values(batch({**where, "subscribePattern": "pick-."})) == everything
    assert values(batch({**where, "subscribePattern": "pick-"})) == []
    assert values(batch({**where, "assign": '{"pick-a":[1],"pick-b":[0]}'})) == everything[1:3]


def test_ranges_are_split_below_a_partition(cluster: LocalCluster) -> None:
    topic = new_topic(cluster, "split")
    send(cluster, topic, numbered(0, 1000))
    for given, least in [({"minPartitions": "7"}, 7), ({"maxRecordsPerPartition": "90"}, 12)]:
        reader = BatchReader(SCHEMA, options(cluster, topic, **given))
        tasks = reader.partitions()
        assert len(tasks) >= least
        assert values(read(reader, pickle.loads(pickle.dumps(tasks)))) == numbered(0, 1000)


def test_filters_leave_tasks_out(cluster: LocalCluster) -> None:
    topic = new_topic(cluster, "filtered", partitions=2)
    for partition in (0, 1):
        send(cluster, topic, numbered(0, 10), partition)
    reader = FilteringBatchReader(SCHEMA, options(cluster, topic))
    offered = [EqualTo(("partition",), 1), GreaterThanOrEqual(("offset",), 6)]
    assert list(reader.pushFilters(list(offered))) == offered  # Spark filters too
    assert values(read(reader, reader.partitions())) == numbered(6, 10)


def test_a_part_of_the_columns(cluster: LocalCluster) -> None:
    topic = new_topic(cluster, "columns")
    send(cluster, topic, numbered(0, 3))
    table = batch(options(cluster, topic), StructType().add("offset", LongType()))
    assert table.to_pydict() == {"offset": [0, 1, 2]}


def test_an_empty_topic_is_an_empty_table(cluster: LocalCluster) -> None:
    reader = BatchReader(SCHEMA, options(cluster, new_topic(cluster, "empty")))
    assert reader.partitions() == []
    assert list(reader.read(InputPartition(None))) == []


def test_errors_come_within_seconds_and_say_what_to_do(cluster: LocalCluster) -> None:
    with pytest.raises(UnknownTopicOrPartition, match=r"no topic 'nowhere'.*suiro topic create"):
        batch(options(cluster, "nowhere"))
    topic = new_topic(cluster, "errors")
    with pytest.raises(InvalidSetting, match="it lacks errors-0"):
        batch(options(cluster, topic, startingOffsets="{}"))
    with pytest.raises(InvalidSetting, match="errors-1 is not among them"):
        batch(options(cluster, topic, startingOffsets='{"errors":{"0":0,"1":0}}'))
    with pytest.raises(InvalidSetting, match="has 1 partitions"):
        batch({"bootstrap": cluster.bootstrap, "assign": '{"errors":[3]}'})
    given = {"bootstrap": "127.0.0.1:1", "subscribe": topic, "suiro.request.timeout.ms": "1000"}
    with pytest.raises(Unavailable, match=r"127.0.0.1:1 \(option 'bootstrap'\) does not answer"):
        batch(given)


# -- transactions (C1, C2) ------------------------------------------------------------------------


def write(cluster: LocalCluster, topic: str, script: str) -> list[bytes]:
    """Transactions of three records each: `c` commits, `a` aborts; returns what counts."""
    committed = []
    with suiro.Producer(cluster.bootstrap, transactional_id=topic) as producer:
        for number, step in enumerate(script):
            producer.begin_transaction()
            some = [b"%s%d-%d" % (step.encode(), number, i) for i in range(3)]
            producer.send_many(topic, some)
            producer.flush()
            if step == "c":
                producer.commit_transaction()
                committed += some
            else:
                producer.abort_transaction()
    return committed


@pytest.mark.parametrize("script", ["c", "a", "aaa", "ca", "ac", "aca", "cac"])
def test_ranges_of_aborted_and_control_offsets(cluster: LocalCluster, script: str) -> None:
    """Ranges that begin with them, end with them, or hold nothing else: all of them end, and none
    miscounts, wherever they are cut.
    """
    topic = new_topic(cluster, f"txn-{script}")
    expected = write(cluster, topic, script)
    assert committed(cluster, topic) == expected
    every = BatchReader(SCHEMA, options(cluster, topic, maxRecordsPerPartition="1"))
    tasks = every.partitions()
    assert len(tasks) == 4 * len(script)  # three records and a marker each
    assert values(read(every, tasks)) == expected
    dirty = batch(options(cluster, topic, isolation="read_uncommitted"))
    assert len(values(dirty)) == 3 * len(script)


def test_latest_is_what_is_decided(cluster: LocalCluster) -> None:
    """An open transaction is not planned; once it is committed, it is read whole."""
    topic = new_topic(cluster, "open")
    send(cluster, topic, [b"before"])
    with suiro.Producer(cluster.bootstrap, transactional_id=topic) as producer:
        producer.begin_transaction()
        producer.send(topic, b"inside")
        producer.flush()
        send(cluster, topic, [b"behind"])
        assert values(batch(options(cluster, topic))) == [b"before"]
        producer.commit_transaction()
    assert committed(cluster, topic) == [b"before", b"inside", b"behind"]


# -- streams --------------------------------------------------------------------------------------


def test_a_stream_reads_each_record_once(cluster: LocalCluster) -> None:
    topic = new_topic(cluster, "steps")
    send(cluster, topic, numbered(0, 5))
    stream = Stream(options(cluster, topic, startingOffsets="earliest"))
    assert stream.next() == numbered(0, 5)
    before = stream.at
    assert stream.next() == []
    assert stream.at == before  # in the very same words, or Spark would run an empty batch
    send(cluster, topic, numbered(5, 9))
    stream.restart()
    assert stream.next() == numbered(5, 9)
    assert before is not None
    assert stream.at is not None
    assert stream.again(before, stream.at) == numbered(5, 9)
    stream.close()


def test_a_first_batch_that_is_run_again_is_the_same(cluster: LocalCluster) -> None:
    """Spark asks anew where to begin, and `latest` has moved meanwhile."""
    topic = new_topic(cluster, "replay")
    send(cluster, topic, numbered(0, 2))
    stream = Stream(options(cluster, topic))
    start = stream.reader.initialOffset()
    send(cluster, topic, numbered(2, 4))
    end = stream.reader.latestOffset(start, ReadAllAvailable())
    send(cluster, topic, numbered(4, 6))
    restarted = Stream(options(cluster, topic))
    other_start = restarted.reader.initialOffset()
    assert other_start != start
    tasks = restarted.reader.partitions(other_start, end)
    assert values(read(restarted.reader, tasks)) == numbered(2, 4)
    stream.close()
    restarted.close()


def test_a_batch_is_bounded(cluster: LocalCluster) -> None:
    topic = new_topic(cluster, "bounded", partitions=2)
    for partition, count in ((0, 100), (1, 10)):
        send(cluster, topic, numbered(0, count), partition)
    given = options(cluster, topic, startingOffsets="earliest", maxOffsetsPerTrigger="40")
    stream = Stream(given)
    sizes = [len(stream.next()) for _ in range(4)]
    assert sizes == [40, 40, 30, 0]
    assert Stream(given).reader.latestOffset(stream.reader.initialOffset(), ReadAllAvailable())
    stream.close()


def test_a_group_shows_where_a_stream_is(cluster: LocalCluster) -> None:
    topic = new_topic(cluster, "grouped")
    send(cluster, topic, numbered(0, 7))
    given = options(cluster, topic, startingOffsets="earliest", maxOffsetsPerTrigger="4")
    stream = Stream({**given, "groupId": "spark-readers"})
    seen = []
    with suiro.Admin(cluster.bootstrap) as admin:
        for _ in range(3):  # the last one finds nothing, and knows that all else is through
            stream.next()
            info = admin.groups.describe_group("spark-readers")
            (lag,) = admin.groups.group_lag(info)
            seen.append((lag.committed, lag.records))
        assert seen == [(0, 7), (4, 3), (7, 0)]
    with suiro.Consumer(cluster.bootstrap, group_id="spark-readers") as consumer:
        consumer.subscribe(topic)
        consumer.poll(5)
        send(cluster, topic, numbered(7, 9))
        stream.next()
        with pytest.raises(GroupNotEmpty, match="1 active members"):
            stream.next()
    stream.close()
    with pytest.raises(InvalidSetting, match="groupId is for streams"):
        batch({**options(cluster, topic), "groupId": "spark-readers"})


def test_lag_in_records_and_seconds(cluster: LocalCluster) -> None:
    """Of what is behind the planned batch; the end of a transaction is no record."""
    topic = new_topic(cluster, "late", partitions=2)
    an_hour_ago_ms = wall_clock_ms() - 3600_000
    with suiro.Producer(cluster.bootstrap, transactional_id="late") as producer:
        for _ in range(3):
            with producer.transaction():
                producer.send(topic, b"x", partition=0, timestamp_ms=an_hour_ago_ms)
    assert len(committed(cluster, topic)) == 3
    stream = Stream(options(cluster, topic, startingOffsets="earliest", maxOffsetsPerTrigger="3"))
    lags = []
    for _ in range(2):
        stream.next()
        lags.append(lag({"latestOffset": stream.reader.reportLatestOffset()}))
    stream.close()
    assert [each["late-0"].records for each in lags] == [2, 0]
    assert [each["late-1"].records for each in lags] == [0, 0]
    assert lags[0]["late-0"].seconds == pytest.approx(3600, abs=100)
    assert lags[1]["late-0"].seconds == 0


def test_what_is_available_now_and_no_more(cluster: LocalCluster) -> None:
    topic = new_topic(cluster, "now")
    send(cluster, topic, numbered(0, 3))
    stream = Stream(options(cluster, topic, startingOffsets="earliest"))
    stream.reader.prepareForTriggerAvailableNow()
    send(cluster, topic, numbered(3, 6))
    assert stream.next() == numbered(0, 3)
    assert stream.next() == []
    stream.close()


def test_new_partitions_and_topics_join_a_stream(cluster: LocalCluster) -> None:
    new_topic(cluster, "grow-1")
    stream = Stream({"bootstrap": cluster.bootstrap, "subscribePattern": "grow-.*"})
    send(cluster, "grow-1", [b"unread"])
    assert stream.next() == []
    with suiro.Admin(cluster.bootstrap) as admin:
        admin.add_partitions("grow-1", 2)
    send(cluster, "grow-1", [b"a"], partition=1)
    new_topic(cluster, "grow-2")
    send(cluster, "grow-2", [b"b"])
    assert stream.next() == [b"a", b"b"]
    stream.close()


def test_a_topic_made_again_is_named(cluster: LocalCluster) -> None:
    topic = new_topic(cluster, "again")
    send(cluster, topic, numbered(0, 3))
    stream = Stream(options(cluster, topic, startingOffsets="earliest"))
    careless = Stream({**stream.given, "failOnDataLoss": "false"})
    assert stream.next() == careless.next() == numbered(0, 3)
    with suiro.Admin(cluster.bootstrap) as admin:
        admin.delete_topic(topic)
    new_topic(cluster, topic)
    send(cluster, topic, [b"other"])
    with pytest.raises(DataLoss, match="topic again was deleted and created again"):
        stream.next()
    assert careless.next() == [b"other"]
    stream.close()
    careless.close()


def test_a_range_that_is_no_longer_there_is_told(cluster: LocalCluster) -> None:
    topic = new_topic(cluster, "shorter")
    send(cluster, topic, numbered(0, 3))
    given = options(cluster, topic)
    reader = BatchReader(SCHEMA, given)
    (task,) = reader.partitions()
    assert isinstance(task, RangePartition)
    gone = RangePartition(Range(task.wanted.place, 40, 50))
    with pytest.raises(DataLoss, match="lost before they were read"):
        read(reader, [gone])
    careless = BatchReader(SCHEMA, {**given, "failOnDataLoss": "false"})
    assert values(read(careless, [gone])) == []
    other = RangePartition(Range(task.wanted.place._replace(topic_id="00"), 0, 3))
    with pytest.raises(DataLoss, match="deleted and created again while it was read"):
        read(careless, [other])


def test_records_that_were_deleted_unread_are_told(cluster: LocalCluster) -> None:
    topic = new_topic(cluster, "trimmed")
    send(cluster, topic, numbered(0, 3))
    stream = Stream(options(cluster, topic, startingOffsets="earliest"))
    careless = Stream({**stream.given, "failOnDataLoss": "false"})
    assert stream.next() == careless.next() == numbered(0, 3)
    send(cluster, topic, numbered(3, 9))
    late = BatchReader(SCHEMA, options(cluster, topic))
    planned = late.partitions()
    with suiro.Admin(cluster.bootstrap) as admin:
        assert admin.delete_records(suiro.TopicPartition(topic, 0), 5) == 5
    with pytest.raises(DataLoss, match="the log begins at 5: 2 offsets were deleted"):
        stream.next()
    assert careless.next() == numbered(5, 9)
    with pytest.raises(DataLoss, match="lost before they were read"):
        read(late, planned)
    late_careless = BatchReader(SCHEMA, options(cluster, topic, failOnDataLoss="false"))
    assert values(read(late_careless, planned)) == numbered(5, 9)
    with pytest.raises(DataLoss, match="startingOffsets says 1"):
        batch(options(cluster, topic, startingOffsets='{"trimmed":{"0":1}}'))
    for each in (stream, careless):
        each.close()
