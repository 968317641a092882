"""Settings, feature levels and producer ids: the small decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from suiro.model.configs import TOPIC_SETTINGS, checked, setting, topic_config
from suiro.model.errors import (
    BrokerFenced,
    InvalidRequest,
    StaleBrokerEpoch,
    UnknownBroker,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from suiro.model.ids import NodeId, ProducerId
from suiro.model.records import ConfigResource, ConfigSet, FeatureLevelSet, ProducerIdsAllocated

from cluster.controller_quorum.metadata_requests import ProducerIds
from cluster.host.machine import Decision

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suiro.model.ids import BrokerEpoch
    from suiro.model.image import ClusterImage, Node

PRODUCER_IDS_PER_BLOCK: Final = 1_000
"""Small enough to lose one per restart without a thought, large enough to ask seldom."""


def topic_setting(image: ClusterImage, topic: str, key: str) -> Any:
    """One setting as it holds for a topic: its own, else the cluster's, else the default."""
    row = TOPIC_SETTINGS[key]
    text = image.configs(ConfigResource.TOPIC, topic).get(key)
    if text is None:
        text = image.configs(ConfigResource.CLUSTER).get(key)
    return row.default if text is None else row.parse(text)


def known_node(image: ClusterImage, node_id: NodeId, broker_epoch: BrokerEpoch) -> Node:
    """The node, if it is the incarnation that speaks."""
    node = image.nodes.get(node_id)
    if node is None:
        raise UnknownBroker(f"node {node_id} is not registered")
    if node.broker_epoch != broker_epoch:
        raise StaleBrokerEpoch(
            f"node {node_id} spoke with broker epoch {broker_epoch}, it is {node.broker_epoch} now"
        )
    return node


def alter_config(
    image: ClusterImage,
    resource: ConfigResource,
    name: str,
    changes: Mapping[str, str | None],
    validate_only: bool,
) -> Decision[None]:
    name = _checked_name(image, resource, name)
    before = image.configs(resource, name)
    after = dict(before)
    for key in sorted(changes):
        value = changes[key]
        if value is None:
            setting(resource, key)
            after.pop(key, None)
        else:
            after[key] = checked(resource, key, value)
    if resource is not ConfigResource.BROKER:
        topic_config(after)  # settings that are fine one by one may contradict one another
    records = tuple(
        ConfigSet(resource, name, key, after.get(key))
        for key in sorted(changes)
        if after.get(key) != before.get(key)
    )
    return Decision(() if validate_only else records, None)


def _checked_name(image: ClusterImage, resource: ConfigResource, name: str) -> str:
    match resource:
        case ConfigResource.TOPIC:
            if image.topic(name) is None:
                raise UnknownTopicOrPartition(f"there is no topic {name}")
        case ConfigResource.BROKER:
            if not name.isdecimal() or NodeId(int(name)) not in image.nodes:
                raise UnknownBroker(f"no broker {name!r} is registered")
            return str(int(name))
        case ConfigResource.CLUSTER:
            if name:
                raise InvalidRequest("the settings of the cluster have no name")
    return name


def set_feature_level(image: ClusterImage, name: str, level: int) -> Decision[None]:
    if level < image.features.get(name, 0):
        raise InvalidRequest(f"{name} is at level {image.features[name]} and cannot go back")
    without = [n for n in sorted(image.nodes) if name not in image.nodes[n].registration.features]
    if level > 0 and without:
        raise UnsupportedVersion(f"{name} is not understood by the nodes {without}")
    if level == image.features.get(name, 0):
        return Decision((), None)
    return Decision((FeatureLevelSet(name, level),), None)


def allocate_producer_ids(
    image: ClusterImage, node_id: NodeId, broker_epoch: BrokerEpoch
) -> Decision[ProducerIds]:
    if known_node(image, node_id, broker_epoch).fenced:
        raise BrokerFenced(f"node {node_id} is fenced")
    start = image.next_producer_id
    end = ProducerId(start + PRODUCER_IDS_PER_BLOCK)
    return Decision((ProducerIdsAllocated(node_id, start, end),), ProducerIds(start, end))
