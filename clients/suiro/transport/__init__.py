"""How calls travel between nodes and from clients; one interface, gRPC behind it."""
