"""The `suiro` command. Each subcommand is a file here; what they share is in `common`."""

from __future__ import annotations

import os
import sys
from typing import Final

from suiro.cli.app import app
from suiro.contexts import CONTEXT_ENVIRONMENT
from suiro.model.error_base import SuiroError
from suiro.model.errors import InternalError, TimedOut
from suiro.settings import ENVIRONMENT
from suiro.transport.trace import current_id, new_parent, work_for

TRACE_ENVIRONMENT: Final = "TRACEPARENT"
"""Where a caller's own request is found, as other tracing tools leave it."""

NOT_HERE: Final = (InternalError, TimedOut)
"""What went wrong at a node: its log has more, under the id of the request."""


def main() -> None:
    """Run a command; an error of ours, or of a file, is one line on standard error and exit
    code 1.
    """
    work_for(os.environ.get(TRACE_ENVIRONMENT) or new_parent())
    try:
        app(_without_context(sys.argv[1:]))
    except SuiroError as error:
        request = f" (request {current_id()})" if isinstance(error, NOT_HERE) else ""
        print(f"suiro: {error}{request}", file=sys.stderr)  # noqa: T201 - the command's own voice
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
