"""The `suiro` command. Each subcommand is a file here; what they share is in `common`."""

from __future__ import annotations

import sys

from suiro.cli.app import app
from suiro.model.error_base import SuiroError


def main() -> None:
    """Run a command; an error of ours is one line on standard error and exit code 1."""
    try:
        app()
    except SuiroError as error:
        print(f"suiro: {error}", file=sys.stderr)  # noqa: T201 - the command's own voice
        sys.exit(1)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has left, as `head` does
        sys.exit(0)
