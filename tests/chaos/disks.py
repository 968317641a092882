"""A disk of its own for a node: an ext4 in a file, which can fill up and lose its power.

The shutdown ioctl of ext4 is what a power failure is to the file system: what was synced is there
after the next mount, the rest is gone. Needs root and loop devices.
"""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SHUTDOWN = 0x8004587D
NO_FLUSH = 2
FILLER = "somebody-elses-files"


class LoopDisk:
    """One of them, mounted at `at`."""

    def __init__(self, image: Path, at: Path, size_mb: int) -> None:
        self.image = image
        self.at = at
        at.mkdir(parents=True, exist_ok=True)
        with image.open("wb") as file:
            file.truncate(size_mb << 20)
        _run("mkfs.ext4", "-q", "-F", str(image))
        self.mount()

    def mount(self) -> None:
        _run("mount", "-o", "loop", str(self.image), str(self.at))

    def unmount(self) -> None:
        if os.path.ismount(self.at):
            _run("umount", str(self.at))

    def power_off(self) -> None:
        """Whoever has files here gets errors from now on; kill it, then `unmount` and `mount`."""
        descriptor = os.open(self.at, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, SHUTDOWN, struct.pack("I", NO_FLUSH))
        finally:
            os.close(descriptor)

    def fill(self, leave_bytes: int) -> None:
        """Somebody else's files take all but so much."""
        state = os.statvfs(self.at)
        size = max(state.f_bavail * state.f_frsize - leave_bytes, 0)
        _run("fallocate", "--length", str(size), str(self.at / FILLER))

    def free(self) -> None:
        (self.at / FILLER).unlink(missing_ok=True)


def _run(*command: str) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
