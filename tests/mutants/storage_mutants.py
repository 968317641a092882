"""Planted bugs of the disk, and of the metadata's word over files: rows 35 to 37.

They are hunted by directed tests of several areas, and by seeds of the whole system.
"""

from __future__ import annotations

from cluster.broker.replicas import Replicas
from cluster.host import fs
from cluster.log import recovery
from tests.mutants.registry import Edit, Mutant

STORAGE_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "row 35: the name of a new directory is not synced",
        "P1",
        (Edit(fs.make_durable_directory, "fs.sync_directory(made.parent)", "pass"),),
    ),
    Mutant(
        "row 36: damage below the recovery point shortens the log",
        "P15",
        (Edit(recovery.Recovery._cut_at, "first_lost >= recovery_point", "True"),),
    ),
    Mutant(
        "row 37: what no metadata know of is deleted",
        "M10",
        (Edit(Replicas._delete_strays, "state is not None and self.node not in state.replicas",
              "state is None or self.node not in state.replicas"),),
    ),
)  # fmt: skip

CANARY = Mutant(
    "canary: names are synced from the outside in",
    "nothing",
    (Edit(fs.make_durable_directory, "(path, *missing)", "(*reversed(missing), path)"),),
)
