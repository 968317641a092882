"""The brokers: partition replicas, and the Produce and Fetch services."""
