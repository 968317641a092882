"""What both sides share: ids, errors, limits, batches. Pure: no I/O, no clock, no randomness."""
