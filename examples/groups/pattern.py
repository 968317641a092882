"""Subscribe to a pattern: topics that are made later are read too.

suiro up --groups 1 --background
python examples/groups/pattern.py
"""

from __future__ import annotations

import sys

import suiro


def main(bootstrap: str | None = None) -> None:
    with (
        suiro.Admin(bootstrap) as admin,
        suiro.Producer(bootstrap) as producer,
        suiro.Consumer(bootstrap, group_id="log", auto_offset_reset="earliest") as consumer,
    ):
        consumer.subscribe(pattern=r"shop-[a-z]+")
        for topic in ("shop-berlin", "shop-tokyo", "bank-berlin"):
            admin.create_topic(topic, partitions=1)
            producer.send(topic, b"opened")
        seen: set[str] = set()
        while len(seen) < 2:
            seen |= {record.topic for record in consumer.poll(1.0)}
        print("read", ", ".join(sorted(seen)))


if __name__ == "__main__":
    main(*sys.argv[1:])
