"""A user's own assignor: partition 0 is heavy, so whoever has it has nothing else.

suiro up --groups 1 --background
python examples/groups/own_assignor.py
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import suiro

if TYPE_CHECKING:
    from suiro.assignor import GroupToAssign

TOPIC = "events"


def heavy_alone(group: GroupToAssign) -> dict[str, list[suiro.TopicPartition]]:
    """A member of the group runs it; it depends on nothing but its argument."""
    members = sorted(member.member_id for member in group.members)
    first, others = members[0], members[1:] or members[:1]
    shares: dict[str, list[suiro.TopicPartition]] = {member: [] for member in members}
    for turn, partition in enumerate(sorted(group.partitions)):
        owner = first if partition.partition == 0 else others[turn % len(others)]
        shares[owner].append(partition)
    return shares


def main(bootstrap: str | None = None) -> None:
    with suiro.Admin(bootstrap) as admin:
        admin.create_topic(TOPIC, partitions=5)
    assignors = (heavy_alone, "cooperative-sticky")
    members = [suiro.Consumer(bootstrap, group_id="heavy", assignors=assignors) for _ in range(3)]
    for member in members:
        member.subscribe(TOPIC)
    while sorted(len(member.assignment()) for member in members) != [1, 2, 2]:
        for member in members:
            member.poll(0.1)
    alone = next(member for member in members if len(member.assignment()) == 1)
    print("alone:", *alone.assignment())
    for member in members:
        member.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
