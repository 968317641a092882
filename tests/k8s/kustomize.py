"""As much of kustomize as our manifests use, for machines that have neither it nor kubectl.

`test_kustomize` compares it with the real one where there is one. What it does not know it refuses.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
from typing import TYPE_CHECKING, Any, Final

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Manifest = dict[str, Any]

KNOWN: Final = {
    "apiVersion", "kind", "namespace", "resources", "labels", "configMapGenerator", "images",
    "patches", "replicas",
}  # fmt: skip
MERGE_KEYS: Final = ("name", "mountPath", "containerPort", "port", "topologyKey")


def build(folder: Path) -> list[Manifest]:
    """What `kustomize build` prints."""
    manifests = _collect(folder)
    for manifest in manifests:
        if manifest["kind"] == "ConfigMap" and manifest.pop("generated", False):
            _hash_name(manifest, manifests)
    return manifests


def _collect(folder: Path) -> list[Manifest]:
    """Of a folder and of all that it refers to; generated maps have no hash in their names yet."""
    wanted = yaml.safe_load((folder / "kustomization.yaml").read_text())
    unknown = wanted.keys() - KNOWN
    assert not unknown, f"{folder}: this renderer does not know {sorted(unknown)}"
    found: list[Manifest] = []
    for name in wanted.get("resources", ()):
        path = folder / name
        found += _collect(path) if path.is_dir() else list(yaml.safe_load_all(path.read_text()))
    for generator in wanted.get("configMapGenerator", ()):
        _generate(generator, folder, found)
    for patch in wanted.get("patches", ()):
        text = yaml.safe_load((folder / patch["path"]).read_text())
        for manifest in _targets(found, patch["target"]):
            _patch(manifest, text)
    for manifest in found:
        _set_namespace(manifest, wanted.get("namespace"))
        for labels in wanted.get("labels", ()):
            _label(manifest, labels["pairs"])
        for replicas in wanted.get("replicas", ()):
            if manifest["metadata"]["name"] == replicas["name"] and "replicas" in manifest["spec"]:
                manifest["spec"]["replicas"] = replicas["count"]
        for image in wanted.get("images", ()):
            _set_image(manifest, image)
    return found


def _generate(generator: Manifest, folder: Path, found: list[Manifest]) -> None:
    data = dict(literal.split("=", 1) for literal in generator.get("literals", ()))
    data |= {
        path.rpartition("/")[2]: (folder / path).read_text() for path in generator.get("files", ())
    }
    if generator.get("behavior") == "merge":
        (base,) = (m for m in found if m["metadata"]["name"] == generator["name"])
        base["data"] |= data
        return
    metadata = {"name": generator["name"]}
    found.append(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata,
            "data": data,
            "generated": 1,
        }
    )


def _hash_name(generated: Manifest, everything: list[Manifest]) -> None:
    """A changed map has another name, so that pods that use it are restarted."""
    name = generated["metadata"]["name"]
    digest = hashlib.sha256(json.dumps(generated["data"], sort_keys=True).encode()).hexdigest()
    generated["metadata"]["name"] = f"{name}-{digest[:10]}"
    for manifest in everything:
        for place in _mappings(manifest):
            for kind in ("configMap", "configMapKeyRef"):
                if isinstance(place.get(kind), dict) and place[kind].get("name") == name:
                    place[kind]["name"] = generated["metadata"]["name"]


def _mappings(value: Any) -> Iterator[Manifest]:
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, dict | list):
            yield from _mappings(item)


def _targets(found: list[Manifest], target: Manifest) -> list[Manifest]:
    name = re.compile(target.get("name", ".*"))
    return [
        m for m in found if m["kind"] == target["kind"] and name.fullmatch(m["metadata"]["name"])
    ]


# -- patches --------------------------------------------------------------------------------------


def _patch(manifest: Manifest, patch: Any) -> None:
    if isinstance(patch, list):
        for step in patch:
            _operate(manifest, step)
        return
    _merge(manifest, {key: value for key, value in patch.items() if key != "metadata"})


def _operate(manifest: Manifest, step: Manifest) -> None:
    """One step of a JSON patch."""
    *way, last = (part.replace("~1", "/") for part in step["path"].strip("/").split("/"))
    place: Any = manifest
    for part in way:
        place = place[int(part)] if isinstance(place, list) else place[part]
    where: Any = int(last) if isinstance(place, list) and last != "-" else last
    match step["op"]:
        case "add" if isinstance(place, list):
            place.insert(len(place) if where == "-" else where, step["value"])
        case "add" | "replace":
            place[where] = copy.deepcopy(step["value"])
        case "remove":
            del place[where]
        case other:
            raise AssertionError(f"this renderer does not know {other}")


def _merge(base: Manifest, patch: Manifest) -> None:
    """Strategically: lists of named things are merged by name, others are replaced."""
    for key, value in patch.items():
        mine = base.get(key)
        if isinstance(value, dict) and isinstance(mine, dict):
            _merge(mine, value)
        elif isinstance(value, list) and isinstance(mine, list) and _merge_key(value):
            _merge_lists(mine, value, _merge_key(value))
        else:
            base[key] = copy.deepcopy(value)


def _merge_lists(base: list[Manifest], patch: list[Manifest], key: str) -> None:
    by_key = {item.get(key): item for item in base}
    for item in patch:
        if item[key] in by_key:
            _merge(by_key[item[key]], item)
        else:
            base.append(copy.deepcopy(item))


def _merge_key(items: list[Any]) -> str:
    for key in MERGE_KEYS:
        if items and all(isinstance(item, dict) and key in item for item in items):
            return key
    return ""


# -- what holds for everything --------------------------------------------------------------------


def _set_namespace(manifest: Manifest, namespace: str | None) -> None:
    if namespace is not None and manifest["kind"] != "Namespace":
        manifest["metadata"]["namespace"] = namespace


def _label(manifest: Manifest, pairs: dict[str, str]) -> None:
    """On everything, in every selector that there is, and in those that must be there."""
    manifest["metadata"].setdefault("labels", {}).update(pairs)
    spec = manifest.get("spec", {})
    match manifest["kind"]:
        case "Service":
            spec.setdefault("selector", {}).update(pairs)
        case "PodDisruptionBudget":
            _selector(spec.setdefault("selector", {}), pairs)
        case "StatefulSet":
            _selector(spec.setdefault("selector", {}), pairs)
            spec["template"].setdefault("metadata", {}).setdefault("labels", {}).update(pairs)
            for claim in spec.get("volumeClaimTemplates", ()):
                claim["metadata"].setdefault("labels", {}).update(pairs)
        case _:
            pass  # it selects nothing
    for place in _mappings(spec):
        for selector in ("labelSelector", "podSelector"):
            if "matchLabels" in place.get(selector, {}):
                _selector(place[selector], pairs)


def _selector(selector: Manifest, pairs: dict[str, str]) -> None:
    selector.setdefault("matchLabels", {}).update(pairs)


def _set_image(manifest: Manifest, image: Manifest) -> None:
    for place in _mappings(manifest):
        named = place.get("image")
        if isinstance(named, str) and named.partition(":")[0] == image["name"]:
            place["image"] = f"{image.get('newName', image['name'])}:{image['newTag']}"
