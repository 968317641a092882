"""What every shell is made of: clock, files, servers, timers, the machine host."""
