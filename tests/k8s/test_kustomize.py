"""Our renderer says what the real one says, where there is one."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.k8s import kustomize
from tests.k8s.manifests import NO_RENDERER, OVERLAYS, render_for_real, renderer

HASHED = re.compile(r"^(suiro-(?:cluster|config))-[a-z0-9]{10}$")


def comparable(value: Any) -> Any:
    """Without the hashes in names, and with named things in order of their names."""
    if isinstance(value, dict):
        return {key: comparable(item) for key, item in value.items() if item not in ({}, None)}
    if isinstance(value, list):
        items = [comparable(item) for item in value]
        named = all(isinstance(item, dict) and "name" in item for item in items)
        return sorted(items, key=lambda item: item["name"]) if named else items
    return HASHED.sub(r"\1", value) if isinstance(value, str) else value


def by_name(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    return {f"{m['kind']} {m['metadata']['name']}": m for m in comparable(manifests)}


@pytest.mark.skipif(renderer() is None, reason=NO_RENDERER)
@pytest.mark.parametrize("overlay", sorted(path.name for path in OVERLAYS.iterdir()))
def test_it_renders_as_kustomize_does(overlay: str) -> None:
    ours = by_name(kustomize.build(OVERLAYS / overlay))
    real = by_name(render_for_real(OVERLAYS / overlay))
    assert ours.keys() == real.keys()
    for name, manifest in real.items():
        assert ours[name] == manifest, name
