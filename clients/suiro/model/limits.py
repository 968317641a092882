"""Every bound of the system, with its reason. A full queue refuses with a retriable error."""

from __future__ import annotations

from typing import Final

MIB: Final = 1 << 20

# -- batches --------------------------------------------------------------------------------------
BATCH_BYTES_MAX: Final = 16 * MIB
"""One stored batch. Measured: 1 MB is best for bulk and 4 MB is slower, so this is only a ceiling.
"""

BATCH_RECORDS_MAX: Final = 1 << 20
"""Records in one batch; bounds what a decoder allocates before it has seen any data."""

BATCH_DECODED_BYTES_MAX: Final = 256 * MIB
"""Both sections of one batch after decompression: a small batch may not become an unbounded one."""

HEADERS_PER_RECORD_MAX: Final = 1 << 16

HEADERS_PER_BATCH_MAX: Final = 1 << 20
"""All records' headers together: as with records, bounds what a decoder allocates."""

# -- wire -----------------------------------------------------------------------------------------
MESSAGE_BYTES_MAX: Final = 64 * MIB
"""gRPC's own limit on both ends; far above any answer we build, so it never decides anything."""

FETCH_BYTES_MAX: Final = 8 * MIB
"""One message of a fetch answer; a larger credit is answered in several messages."""

PRODUCE_IN_FLIGHT_MAX: Final = 5
"""Requests of one producer on one stream: the deduplication window per producer and partition."""

FETCH_CHUNK_BYTES: Final = 2 * MIB
"""One message of a fetch stream, unless a single batch is larger."""

PRODUCE_TIMEOUT_MS_MAX: Final = 60_000
"""The longest that acks=all may wait for the in-sync replicas."""

PRODUCERS_WAITING_MAX: Final = 100_000
"""Requests that wait for one partition's high watermark; a producer has five at most."""

FETCH_WAIT_MS_MAX: Final = 30_000
"""The longest a long poll may be parked, so that a parked fetch cannot hide a dead node."""

# -- the log --------------------------------------------------------------------------------------
SEGMENT_BYTES_DEFAULT: Final = 1 << 30
SEGMENT_MS_DEFAULT: Final = 7 * 24 * 3600 * 1000
SEGMENT_BYTES_MAX: Final = (1 << 31) - 1
"""Index entries hold 32-bit positions."""

INDEX_INTERVAL_BYTES_DEFAULT: Final = 4096

CHECKPOINT_MS: Final = 10_000
"""So much writing, at most, has to be read again when a broker starts after a crash."""

DISK_RESERVE_BYTES: Final = 64 * MIB
"""Of each log directory's disk: what deletion and the stores need to go on when it is full."""

EVENTS_WAITING_MAX: Final = 100_000
"""Lines of the event log that wait to be written: a second of appends, tens of megabytes."""

# -- the machines ---------------------------------------------------------------------------------
DECISIONS_WAITING_MAX: Final = 10_000
"""Replies of one machine that wait for their commit: seconds of work at any rate we have seen."""

COMMIT_WAIT_MS_MAX: Final = 30_000
"""A commit that takes longer has no quorum; the caller is told that the outcome is unknown."""

METRIC_SERIES_MAX: Final = 10_000
"""Label values of one metric; what comes later is counted as `other`, so a scrape stays bounded."""

# -- consumer groups ------------------------------------------------------------------------------
GROUP_MEMBERS_MAX: Final = 2_000
"""Members of one group: a target for so many is computed in well under a second."""

GROUP_NAME_LENGTH_MAX: Final = 249

GROUP_TOPICS_MAX: Final = 1_000
"""Topics that one member names; a pattern may match more."""

GROUP_HISTORY_MAX: Final = 16
"""Rebalances that a group remembers."""

GROUP_MOVES_MAX: Final = 100
"""Moves that a remembered rebalance lists; the rest is only counted."""

GROUP_REASONS_MAX: Final = 8
"""Reasons of one rebalance that are named; the rest is only counted."""

OFFSET_METADATA_LENGTH_MAX: Final = 4_096

OFFSETS_PER_COMMIT_MAX: Final = 10_000

# -- names ----------------------------------------------------------------------------------------
TOPIC_NAME_LENGTH_MAX: Final = 249
"""Kafka's limit: the directory name `<topic>-<partition>` must fit a file system's 255."""

PARTITIONS_PER_TOPIC_MAX: Final = 100_000

PARTITIONS_PER_DECISION_MAX: Final = 1_000
"""New partitions of one decision: up to 100 ms, a third of an election timeout."""

DELETED_TOPICS_MAX: Final = 10_000
"""Deleted topics that the metadata remembers, so that a broker that was away learns of them; one
that missed more than these keeps their files, which are listed for an operator.
"""

# -- the metadata quorum --------------------------------------------------------------------------
CALLS_IN_FLIGHT_MAX: Final = 1_024
"""Unanswered calls of one node at a controller; a node's own work has a few dozen at most."""

CALLS_BATCH_BYTES: Final = MIB
"""Calls or answers that travel as one message; a single larger one still travels, alone."""

QUORUM_APPEND_BYTES_MAX: Final = MIB
"""Entries of one append message; a single larger entry still travels, alone."""

QUORUM_APPENDS_IN_FLIGHT_MAX: Final = 16
"""Appends under way to one follower: enough to fill a link, few enough to send again."""

QUORUM_CHUNK_BYTES_MAX: Final = MIB
"""One piece of a snapshot."""

QUORUM_READS_MAX: Final = 10_000
"""Reads that wait for a leader's round of heartbeats."""

QUORUM_UNCOMMITTED_ENTRIES_MAX: Final = 10_000
"""Entries that a leader without a majority collects before it refuses more."""

QUORUM_TRAILING_ENTRIES: Final = 1_000
"""Entries kept before a snapshot, so that a follower a little behind needs no snapshot."""
