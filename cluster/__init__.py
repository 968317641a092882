"""The server side of Suiro: `python -m cluster` runs a node with any set of roles."""
