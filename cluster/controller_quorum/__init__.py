"""The Raft quorum that owns the cluster metadata."""
