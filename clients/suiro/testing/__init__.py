"""A real cluster for tests, with faults: `Cluster`, and the pytest fixtures in `plugin`.

```python
def test_survives_a_dead_broker(suiro_cluster):  # pip install suiro, nothing else
    topic = suiro_cluster.topic()
    with suiro_cluster.producer() as producer:
        producer.send(topic, b"kept").result(10)
    suiro_cluster.kill(1)
    suiro_cluster.restart(1)
    with suiro_cluster.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign(consumer.partitions_of(topic))
        assert consumer.poll(10)[0].value == b"kept"
```
"""

from suiro.testing.cluster import Cluster

__all__ = ["Cluster"]
