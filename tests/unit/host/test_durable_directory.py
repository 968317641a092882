"""A directory's name survives a power loss, and so does what was synced inside of it.

Found by seed 4 of the whole-system simulation: the log directory of a new broker was never synced
in the directory above it, so its first power loss took every record that flush=ack had promised.
"""

from __future__ import annotations

from pathlib import Path

from cluster.host.fs import make_durable_directory, replace_file
from tests.sim.disk import ForgetfulFs, Nothing

ROOT = Path("/data/deep/log")


def test_its_name_survives_with_what_is_in_it() -> None:
    fs = ForgetfulFs()
    make_durable_directory(fs, ROOT)
    replace_file(fs, ROOT / "file", b"kept")
    fs.crash(Nothing())
    assert fs.content(ROOT / "file") == b"kept"


def test_one_that_a_killed_process_made_is_made_durable_too() -> None:
    fs = ForgetfulFs()
    make_durable_directory(fs, ROOT.parent)
    fs.make_directory(ROOT)
    make_durable_directory(fs, ROOT)
    fs.crash(Nothing())
    assert fs.exists(ROOT)
