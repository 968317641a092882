"""The `suiro` command. Each subcommand is a file here; what they share is in `common`."""

from __future__ import annotations

import os
import sys

from suiro.cli.app import app
from suiro.contexts import CONTEXT_ENVIRONMENT
from suiro.model.error_base import SuiroError
from suiro.settings import ENVIRONMENT


def main() -> None:
    """Run a command; an error of ours, or of a file, is one line on standard error and exit
    code 1.
    """
    try:
        app(_without_context(sys.argv[1:]))
    except SuiroError as error:
        print(f"suiro: {error}", file=sys.stderr)  # noqa: T201 - the command's own voice
        sys.exit(1)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has left, as `head` does
        sys.exit(0)
    except OSError as error:  # of a file that the user named
        print(f"suiro: {error.filename}: {error.strerror}", file=sys.stderr)  # noqa: T201
        sys.exit(1)


def _without_context(words: list[str]) -> list[str]:
    """`--context NAME` is understood by every command and counts more than the environment."""
    rest = words[: words.index("--")] if "--" in words else words
    for place, word in enumerate(rest):
        option, equals, name = word.partition("=")
        if option != "--context" or (not equals and place + 1 == len(rest)):
            continue
        os.environ[CONTEXT_ENVIRONMENT] = name if equals else rest[place + 1]
        os.environ.pop(ENVIRONMENT, None)
        return words[:place] + words[place + (1 if equals else 2) :]
    return words
