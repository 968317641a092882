"""The manifests as Kubernetes would get them: rendered by kustomize, one dictionary each."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.k8s import kustomize

ROOT = Path(__file__).parents[2]
OVERLAYS = ROOT / "k8s" / "overlays"

Manifest = dict[str, Any]


def renderer() -> list[str] | None:
    """The command that renders a folder, if this machine has one."""
    if shutil.which("kubectl"):
        return ["kubectl", "kustomize"]
    return ["kustomize", "build"] if shutil.which("kustomize") else None


NO_RENDERER = "there is neither kubectl nor kustomize to render the manifests"


def render(folder: Path) -> list[Manifest]:
    """By the real one if this machine has it; ours says the same (`test_kustomize`)."""
    return kustomize.build(folder) if renderer() is None else render_for_real(folder)


def render_for_real(folder: Path) -> list[Manifest]:
    command = renderer()
    assert command is not None, NO_RENDERER
    done = subprocess.run([*command, str(folder)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [manifest for manifest in yaml.safe_load_all(done.stdout) if manifest]


def of_kind(manifests: list[Manifest], kind: str) -> dict[str, Manifest]:
    """By name."""
    return {m["metadata"]["name"]: m for m in manifests if m["kind"] == kind}


def pod_of(stateful_set: Manifest) -> Manifest:
    pod: Manifest = stateful_set["spec"]["template"]["spec"]
    return pod


def node_of(stateful_set: Manifest) -> Manifest:
    """The container of the node itself."""
    node: Manifest
    (node,) = pod_of(stateful_set)["containers"]
    return node
