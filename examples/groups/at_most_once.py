"""At most once: commit, then handle. A crash loses what was being handled, nothing comes twice.

suiro up --groups 1 --background
python examples/groups/at_most_once.py
"""

from __future__ import annotations

import sys

import suiro

TOPIC = "readings"


def handle(value: bytes | None) -> None:
    """Handling it twice would be worse than not at all."""
    print("handled", value)


def run(bootstrap: str | None, crash_at: bytes | None) -> None:
    """Until nothing comes for a while, or until it "crashes"."""
    with suiro.Consumer(
        bootstrap, group_id="at-most-once", auto_offset_reset="earliest", enable_auto_commit=False
    ) as consumer:
        consumer.subscribe(TOPIC)
        while records := consumer.poll(5.0, max_records=3):
            consumer.commit()
            for record in records:
                if record.value == crash_at:
                    print("crashed at", record.value)
                    return
                handle(record.value)


def main(bootstrap: str | None = None) -> None:
    with suiro.Admin(bootstrap) as admin:
        admin.create_topic(TOPIC, partitions=1)
    with suiro.Producer(bootstrap) as producer:
        for number in range(6):
            producer.send(TOPIC, b"%d" % number)
    run(bootstrap, crash_at=b"1")
    run(bootstrap, crash_at=None)


if __name__ == "__main__":
    main(*sys.argv[1:])
