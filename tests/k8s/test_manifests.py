"""Every manifest is valid, and keeps what docs/operations.md says of it."""

from __future__ import annotations

import tomllib
from functools import cache
from typing import TYPE_CHECKING

import kubernetes_validate
import pytest
from kubernetes_validate.utils import all_versions, major_minor

from cluster.config import NodeConfig
from tests.k8s.manifests import (
    OVERLAYS,
    Manifest,
    node_of,
    of_kind,
    pod_of,
    render,
)

if TYPE_CHECKING:
    from pathlib import Path

NAMES = sorted(path.name for path in OVERLAYS.iterdir())
ROLES = ["broker", "controller", "group", "txn"]
NEWEST = sorted({major_minor(v) for v in all_versions()}, key=lambda v: int(v.split(".")[1]))[-2:]


@cache
def overlay(name: str) -> tuple[Manifest, ...]:
    return tuple(render(OVERLAYS / name))


def stateful_set(name: str, role: str) -> Manifest:
    return of_kind(list(overlay(name)), "StatefulSet")[f"suiro-{role}"]


@pytest.mark.parametrize("version", NEWEST)
@pytest.mark.parametrize("name", NAMES)
def test_every_manifest_is_valid_under_the_strict_schema(name: str, version: str) -> None:
    assert {m["kind"] for m in overlay(name)} >= {
        "StatefulSet", "Service", "ConfigMap", "PodDisruptionBudget", "NetworkPolicy",
    }  # fmt: skip
    for manifest in overlay(name):
        kubernetes_validate.validate(manifest, version, strict=True)


def test_the_schema_is_strict() -> None:
    """What the check above would say of a typing error."""
    broken = {**stateful_set("dev", "broker")}
    broken["spec"] = {**broken["spec"], "podManagmentPolicy": "Parallel"}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, NEWEST[-1], strict=True)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("role", ROLES)
def test_a_role_has_its_names_and_its_budget(name: str, role: str) -> None:
    spec = stateful_set(name, role)["spec"]
    labels = spec["template"]["metadata"]["labels"]
    service = of_kind(list(overlay(name)), "Service")[spec["serviceName"]]["spec"]
    assert service["clusterIP"] == "None"
    assert service["publishNotReadyAddresses"], "a node is looked up before it is ready"
    assert service["selector"].items() <= labels.items()
    budget = of_kind(list(overlay(name)), "PodDisruptionBudget")[f"suiro-{role}"]["spec"]
    assert budget["maxUnavailable"] == 1
    assert budget["selector"]["matchLabels"].items() <= labels.items()
    assert spec["podManagementPolicy"] == "Parallel", "after a power loss all wait for all"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("role", ROLES)
def test_a_pod_may_do_little_and_is_probed(name: str, role: str) -> None:
    pod = pod_of(stateful_set(name, role))
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    for container in [*pod["initContainers"], *pod["containers"]]:
        locked = container["securityContext"]
        assert locked["readOnlyRootFilesystem"] is True
        assert locked["allowPrivilegeEscalation"] is False
        assert locked["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["limits"]["memory"]
    node = node_of(stateful_set(name, role))
    probes = {kind: node[f"{kind}Probe"]["grpc"]["service"] for kind in PROBED}
    assert probes == PROBED
    stop_s = int(node["lifecycle"]["preStop"]["exec"]["command"][-1].partition("=")[2])
    assert pod["terminationGracePeriodSeconds"] >= stop_s + 30, "time is left for the stop itself"


PROBED = {"startup": "live", "liveness": "live", "readiness": "ready"}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("role", ["controller", "broker"])
def test_a_volume_outlives_its_pod(name: str, role: str) -> None:
    spec = stateful_set(name, role)["spec"]
    (claim,) = spec["volumeClaimTemplates"]
    assert claim["metadata"]["name"] == "data"
    assert set(spec["persistentVolumeClaimRetentionPolicy"].values()) == {"Retain"}


def test_in_production_no_two_of_a_role_share_a_machine() -> None:
    for role in ROLES:
        pod = pod_of(stateful_set("production", role))
        (rule,) = pod["affinity"]["podAntiAffinity"][
            "requiredDuringSchedulingIgnoredDuringExecution"
        ]
        assert rule["topologyKey"] == "kubernetes.io/hostname"
        assert rule["matchLabelKeys"] == ["app.kubernetes.io/component"]
        (spread,) = pod["topologySpreadConstraints"]
        assert spread["whenUnsatisfiable"] == "DoNotSchedule"


def test_cluster_ids_differ() -> None:
    """Two clusters that shared one would take each other's nodes."""
    ids = set()
    for name in NAMES:
        for manifest_name, manifest in of_kind(list(overlay(name)), "ConfigMap").items():
            if manifest_name.startswith("suiro-cluster-"):
                ids.add(manifest["data"]["cluster-id"])
    assert len(ids) == len(NAMES)
    assert all(len(cluster_id) == 22 for cluster_id in ids)


@pytest.mark.parametrize("role", ROLES)
def test_the_files_of_the_config_map_are_a_nodes(role: str, tmp_path: Path) -> None:
    files = next(
        m["data"]
        for n, m in of_kind(list(overlay("production")), "ConfigMap").items()
        if n.startswith("suiro-config-")
    )
    text = files[f"{role}.toml"]
    path = tmp_path / f"{role}.toml"
    path.write_text(text)
    config = NodeConfig.from_toml(path, name=f"suiro-{role}-2")
    assert config.node_id == tomllib.loads(text)["first_node_id"] + 2
    assert config.roles == (role,)
    names = [f"suiro-controller-{i}.suiro-controller" for i in range(3)]
    assert [address.host for address in config.controllers] == names
    assert len(names) == stateful_set("production", "controller")["spec"]["replicas"]
