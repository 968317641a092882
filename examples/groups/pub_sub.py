"""Pub/sub mode: every group gets every record, whatever the other groups do.

suiro up --groups 1 --background
python examples/groups/pub_sub.py
"""

from __future__ import annotations

import sys

import suiro

TOPIC = "signups"


def main(bootstrap: str | None = None) -> None:
    with suiro.Admin(bootstrap) as admin:
        admin.create_topic(TOPIC, partitions=2)
    with suiro.Producer(bootstrap) as producer:
        for number in range(4):
            producer.send(TOPIC, b"user %d" % number)
    for group in ("mails", "statistics"):
        with suiro.Consumer(bootstrap, group_id=group, auto_offset_reset="earliest") as consumer:
            consumer.subscribe(TOPIC)
            seen = 0
            while seen < 4:
                for record in consumer.poll(1.0):
                    print(group, "got", record.value)
                    seen += 1


if __name__ == "__main__":
    main(*sys.argv[1:])
