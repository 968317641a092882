"""Static members: a worker that restarts within its session timeout keeps what it had.

suiro up --groups 1 --background
python examples/groups/static_member.py
"""

from __future__ import annotations

import sys

import suiro

TOPIC = "meters"


def start(bootstrap: str | None, name: str) -> suiro.Consumer:
    """`group_instance_id` is the worker's name, which it has again after a restart."""
    consumer = suiro.Consumer(
        bootstrap, group_id="static", group_instance_id=name, session_timeout_ms=30_000
    )
    consumer.subscribe(TOPIC)
    return consumer


def settle(consumers: list[suiro.Consumer], partitions: int) -> None:
    while sum(len(consumer.assignment()) for consumer in consumers) != partitions or not all(
        consumer.assignment() for consumer in consumers
    ):
        for consumer in consumers:
            consumer.poll(0.1)


def main(bootstrap: str | None = None) -> None:
    with suiro.Admin(bootstrap) as admin:
        admin.create_topic(TOPIC, partitions=4)
        one, two = start(bootstrap, "one"), start(bootstrap, "two")
        settle([one, two], 4)
        had, moves = two.assignment(), len(admin.groups.describe_group("static").history)
        again = start(bootstrap, "two")  # takes the place of the process that has its name
        settle([one, again], 4)
        print("the same partitions:", again.assignment() == had)
        print("rebalances:", len(admin.groups.describe_group("static").history) - moves)
        for consumer in (one, two, again):
            consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
