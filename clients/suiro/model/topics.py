"""What a topic may be called, the topics that Suiro keeps for itself, and whose shard a name is in.

A coordinator shard is one partition of its kind's internal topic. Which shard a group or a
transactional id belongs to is a hash of its name that clients and coordinators compute alike, so
the number of partitions of an internal topic never changes.
"""

from __future__ import annotations

import re
import zlib
from typing import Final

from suiro.model.errors import InvalidTopic
from suiro.model.limits import TOPIC_NAME_LENGTH_MAX
from suiro.model.records import ShardKind

GROUP_TOPIC: Final = "__consumer_offsets"
TXN_TOPIC: Final = "__transaction_state"

SHARD_TOPICS: Final = {ShardKind.GROUP: GROUP_TOPIC, ShardKind.TXN: TXN_TOPIC}
SHARD_KINDS: Final = {topic: kind for kind, topic in SHARD_TOPICS.items()}
SHARDS_DEFAULT: Final = 16
"""Partitions of an internal topic: enough to spread over many coordinators, few to replay."""

INTERNAL_TOPIC_CONFIGS: Final = {"cleanup.policy": "compact", "segment.bytes": str(1 << 20)}
"""Only the newest state of each group or transaction counts. The newest segment is not compacted,
and a coordinator that takes over replays it: 1 MiB are 6,000 small commits, a quarter of a second.
"""

_LEGAL: Final = re.compile(r"[A-Za-z0-9._-]+")


def is_internal(topic: str) -> bool:
    return topic in SHARD_KINDS


def shard_of(name: str, shards: int) -> int:
    """The shard of a group or a transactional id."""
    return zlib.crc32(name.encode()) % shards


def check_topic_name(name: str) -> None:
    """Raise InvalidTopic, saying what is wrong, unless a topic may be called so."""
    if not name:
        raise InvalidTopic("a topic needs a name")
    if name in {".", ".."}:
        raise InvalidTopic(f"a topic cannot be called {name!r}")
    if len(name) > TOPIC_NAME_LENGTH_MAX:
        raise InvalidTopic(
            f"the name has {len(name)} characters, at most {TOPIC_NAME_LENGTH_MAX} are allowed"
        )
    if not _LEGAL.fullmatch(name):
        raise InvalidTopic(f"{name!r}: a topic's name is made of letters, digits, '.', '_' and '-'")
