"""Named clusters: a file that says which name stands for which connection string.

The file is `suiro/contexts.toml` in the user's configuration directory; `suiro context` writes it.
Whoever names no cluster gets the one that SUIRO_CONTEXT names, or the current one of the file.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from suiro.model.errors import InvalidSetting

CONTEXT_ENVIRONMENT: Final = "SUIRO_CONTEXT"
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


@dataclass(slots=True)
class Contexts:
    """What the file says."""

    current: str = ""
    bootstraps: dict[str, str] = field(default_factory=dict)
    """The connection string of each context, by its name."""

    def bootstrap_of(self, name: str) -> str:
        """Raises InvalidSetting for a name that is not there, with the nearest that is."""
        if name in self.bootstraps:
            return self.bootstraps[name]
        near = difflib.get_close_matches(name, self.bootstraps, n=1)
        known = ", ".join(self.bootstraps) or "none; `suiro context add` makes one"
        hint = f"did you mean '{near[0]}'?" if near else f"known are {known}"
        raise InvalidSetting(f"there is no context '{name}': {hint}")

    def add(self, name: str, bootstrap: str) -> None:
        """The first one becomes the current one."""
        if not _NAME.fullmatch(name):
            raise InvalidSetting(f"'{name}' is no name: use letters, digits, '-', '_' and '.'")
        self.bootstraps[name] = bootstrap
        self.current = self.current or name

    def use(self, name: str) -> None:
        self.bootstrap_of(name)
        self.current = name

    def remove(self, name: str) -> None:
        self.bootstrap_of(name)
        del self.bootstraps[name]
        if self.current == name:
            self.current = ""

    def as_toml(self) -> str:
        # A JSON string is a TOML string too.
        tables = (
            f"\n[contexts.{json.dumps(name)}]\nbootstrap = {json.dumps(bootstrap)}\n"
            for name, bootstrap in self.bootstraps.items()
        )
        return f"current = {json.dumps(self.current)}\n" + "".join(tables)


def contexts_path() -> Path:
    """Where the file is, by the environment: XDG_CONFIG_HOME, else ~/.config."""
    home = os.environ.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path.home() / ".config") / "suiro" / "contexts.toml"


def load_contexts() -> Contexts:
    """What the file says; nothing if there is none."""
    path = contexts_path()
    try:
        content = tomllib.loads(path.read_text())
        tables = content.get("contexts", {})
        bootstraps = {name: str(table["bootstrap"]) for name, table in tables.items()}
        return Contexts(str(content.get("current", "")), bootstraps)
    except FileNotFoundError:
        return Contexts()
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError, AttributeError) as error:
        raise InvalidSetting(f"{path} cannot be read: {error!r}") from None


def save_contexts(contexts: Contexts) -> None:
    """Replace the file in one step."""
    path = contexts_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_text(contexts.as_toml())
    fresh.replace(path)


def bootstrap_of_context() -> str | None:
    """Where the context that counts is; None if no context was ever chosen."""
    named = os.environ.get(CONTEXT_ENVIRONMENT)
    contexts = load_contexts()
    name = named or contexts.current
    return contexts.bootstrap_of(name) if name else None
