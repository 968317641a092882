"""Queue mode: the members of one group share the work, each record goes to one of them.

    suiro up --background
    python examples/groups/queue.py

There are two partitions and three workers: the third waits, and takes over when another one leaves.
"""

from __future__ import annotations

import sys

import suiro

TOPIC = "jobs"


def worker(bootstrap: str | None, name: str) -> suiro.Consumer:
    consumer = suiro.Consumer(
        bootstrap, group_id="workers", client_id=name, auto_offset_reset="earliest"
    )
    consumer.subscribe(TOPIC)
    return consumer


def work(workers: dict[str, suiro.Consumer], jobs: int) -> None:
    """Until so many jobs are done. Workers are normally processes of their own."""
    while jobs > 0:
        for name, consumer in workers.items():
            for record in consumer.poll(0.1):
                print(name, "did", record.value)
                jobs -= 1


def settle(workers: dict[str, suiro.Consumer]) -> None:
    """Until two of them have a partition each; there are no jobs yet that a poll could return."""
    while sorted(len(consumer.assignment()) for consumer in workers.values())[-2:] != [1, 1]:
        for consumer in workers.values():
            consumer.poll(0.1)
    for name, consumer in workers.items():
        print(name, "has", ", ".join(map(str, consumer.assignment())) or "nothing to do")


def main(bootstrap: str | None = None) -> None:
    with suiro.Admin(bootstrap) as admin:
        admin.create_topic(TOPIC, partitions=2)
    with suiro.Producer(bootstrap) as producer:
        workers = {name: worker(bootstrap, name) for name in ("ann", "ben", "cid")}
        settle(workers)
        for number in range(4):
            producer.send(TOPIC, b"job %d" % number, partition=number % 2)
        work(workers, jobs=4)
        leaver = next(name for name, consumer in workers.items() if consumer.assignment())
        workers.pop(leaver).close()
        print(leaver, "left")
        settle(workers)
        for number in range(4, 6):
            producer.send(TOPIC, b"job %d" % number, partition=number % 2)
        work(workers, jobs=2)
        for consumer in workers.values():
            consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
