"""Exactly once: what is written and where the group is are one transaction.

    suiro up --background
    python examples/groups/exactly_once.py

A crash undoes both, so the second run begins where the first one's last commit was, and whoever
reads the results (read_committed is the default) sees each of them once.
"""

from __future__ import annotations

import sys

import suiro

SOURCE, RESULTS = "numbers", "squares"


def run(bootstrap: str | None, crash_at: bytes | None) -> None:
    """Until nothing comes for a while, or until it "crashes" in the middle of a transaction."""
    with (
        suiro.Producer(bootstrap, transactional_id="squares") as producer,
        suiro.Consumer(
            bootstrap, group_id="squares", auto_offset_reset="earliest", enable_auto_commit=False
        ) as consumer,
    ):
        consumer.subscribe(SOURCE)
        while records := consumer.poll(5.0, max_records=3):
            producer.begin_transaction()
            for record in records:
                if record.value == crash_at:
                    print("crashed at", record.value)
                    producer.abort_transaction()
                    return
                producer.send(RESULTS, b"%d" % int(record.value or 0) ** 2)
            producer.send_offsets(consumer)
            producer.commit_transaction()


def main(bootstrap: str | None = None) -> None:
    with suiro.Admin(bootstrap) as admin:
        for topic in (SOURCE, RESULTS):
            admin.create_topic(topic, partitions=1)
    with suiro.Producer(bootstrap) as producer:
        for number in range(6):
            producer.send(SOURCE, b"%d" % number)
    run(bootstrap, crash_at=b"4")
    run(bootstrap, crash_at=None)
    with suiro.Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign(consumer.partitions_of(RESULTS))
        while records := consumer.poll(2.0):
            for record in records:
                print("result", record.value)


if __name__ == "__main__":
    main(*sys.argv[1:])
