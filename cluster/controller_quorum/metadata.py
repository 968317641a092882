"""The machine of the controllers: every change of the cluster's metadata is decided here.

Each `decide_*` reads the image and returns the records that would change it, the reply, and what
else is to be done; it changes nothing. `apply` is the only mutator. The rules themselves are in the
modules beside this one, by subject; this class is the list of what can be asked.

Epochs. A broker epoch is one more than any that was ever given out, kept in the image. A leader
epoch rises by one with every change of leader, and only then; a partition epoch rises by one with
any change of the partition. Both begin at 0 with the partition. An owner epoch rises by one with
every change of a shard's owner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from suiro.model.image import ClusterImage

from cluster.controller_quorum import (
    elections,
    metadata_configs,
    metadata_isr,
    metadata_nodes,
    metadata_offline,
    metadata_shards,
    metadata_topics,
    reassignment,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suiro.model.ids import BrokerEpoch, NodeId, TopicPartition
    from suiro.model.records import ConfigResource, MetadataRecord, PartitionId, ShardKind

    from cluster.controller_quorum.metadata_requests import (
        Heartbeat,
        IsrOutcome,
        IsrProposal,
        Move,
        NewTopic,
        PartitionOutcome,
        ProducerIds,
        Registered,
        Registration,
        Standing,
        TopicOutcome,
    )
    from cluster.host.machine import Decision


class MetadataMachine:
    """The metadata of one cluster, at the controller that decides and at those that follow it."""

    def __init__(self, image: ClusterImage | None = None) -> None:
        self.image = ClusterImage() if image is None else image

    def apply(self, record: MetadataRecord) -> None:
        self.image.apply(record)

    # -- nodes ------------------------------------------------------------------------------------

    def decide_register(self, node: Registration, *, session_alive: bool) -> Decision[Registered]:
        """Let a node in, fenced. `session_alive`: an earlier incarnation is still being heard."""
        return metadata_nodes.register(self.image, node, session_alive)

    def decide_heartbeat(self, heartbeat: Heartbeat) -> Decision[Standing]:
        """Unfence a node that is ready; take leaders and shards off one that wants to leave."""
        return metadata_nodes.heartbeat(self.image, heartbeat)

    def decide_fence(self, node_id: NodeId, broker_epoch: BrokerEpoch) -> Decision[Standing]:
        """Its session is over: it leads nothing and counts in no ISR from here on."""
        return metadata_nodes.fence(self.image, node_id, broker_epoch)

    def decide_evacuate(
        self, node_id: NodeId, broker_epoch: BrokerEpoch, partitions: Sequence[PartitionId]
    ) -> Decision[int]:
        """Take a node that is about to go out of those partitions that others can lead; how many.
        What is left for the decision that lets it go is smaller by them.
        """
        return metadata_nodes.evacuate(self.image, node_id, broker_epoch, partitions)

    def decide_unfence(self, node_id: NodeId, broker_epoch: BrokerEpoch) -> Decision[Standing]:
        """It serves, and leads again some of what nobody leads: `decide_lead_again` the rest."""
        return metadata_nodes.unfence(self.image, node_id, broker_epoch)

    def decide_lead_again(
        self, node_id: NodeId, broker_epoch: BrokerEpoch, partitions: Sequence[PartitionId]
    ) -> Decision[int]:
        """Let a node lead those of the partitions that nobody leads and that it may; how many."""
        return metadata_nodes.lead_again(self.image, node_id, broker_epoch, partitions)

    def decide_controlled_shutdown(
        self, node_id: NodeId, broker_epoch: BrokerEpoch
    ) -> Decision[Standing]:
        """Move what it leads and owns away. To be asked again until the reply lets it go."""
        return metadata_nodes.controlled_shutdown(self.image, node_id, broker_epoch)

    def decide_unregister(self, node_id: NodeId) -> Decision[None]:
        """Forget a node for good; refused while replicas are on it."""
        return metadata_nodes.unregister(self.image, node_id)

    # -- topics -----------------------------------------------------------------------------------

    def decide_create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> Decision[tuple[TopicOutcome, ...]]:
        return metadata_topics.create_topics(self.image, topics, validate_only)

    def decide_delete_topics(self, names: Sequence[str]) -> Decision[tuple[TopicOutcome, ...]]:
        return metadata_topics.delete_topics(self.image, names)

    def decide_add_partitions(
        self, name: str, total: int, *, validate_only: bool = False
    ) -> Decision[int]:
        """Give a topic `total` partitions, which must be more than it has."""
        return metadata_topics.add_partitions(self.image, name, total, validate_only)

    # -- leaders and replicas ---------------------------------------------------------------------

    def decide_alter_isr(
        self, node_id: NodeId, broker_epoch: BrokerEpoch, proposals: Sequence[IsrProposal]
    ) -> Decision[tuple[IsrOutcome, ...]]:
        """A leader's proposals, each accepted or refused by itself."""
        return metadata_isr.alter_isr(self.image, node_id, broker_epoch, proposals)

    def decide_report_replicas(
        self,
        node_id: NodeId,
        broker_epoch: BrokerEpoch,
        offline: Sequence[PartitionId],
        online: Sequence[PartitionId] = (),
    ) -> Decision[int]:
        """Which of a broker's replicas cannot be used, and which can again; how many change."""
        return metadata_offline.report_replicas(self.image, node_id, broker_epoch, offline, online)

    def decide_elect_leaders(
        self, partitions: Sequence[TopicPartition] | None = None, *, unclean: bool = False
    ) -> Decision[tuple[PartitionOutcome, ...]]:
        """Let the preferred replicas lead, or with `unclean` whoever is left where the topic allows
        it; None stands for all partitions.
        """
        return elections.elect_leaders(self.image, partitions, unclean)

    def decide_balance_leaders(
        self, moves_max: int, imbalance_percentage: int = 0
    ) -> Decision[int]:
        """The background's share of the same: give back to preferred replicas of which more than
        that share is led by others, some at a time; and find leaders for partitions that have none.
        Replies how many leaders change.
        """
        return elections.balance_leaders(self.image, moves_max, imbalance_percentage)

    def decide_reassign(
        self, moves: Sequence[Move], *, throttle_bytes_per_s: int | None = None
    ) -> Decision[tuple[PartitionOutcome, ...]]:
        """Begin or cancel reassignments, and set what they may cost; None leaves that as it is."""
        return reassignment.reassign(self.image, moves, throttle_bytes_per_s)

    def decide_complete_reassignments(self) -> Decision[int]:
        """Complete what can be; a leader's proposal does it at once, this is for the rest."""
        return reassignment.complete_reassignments(self.image)

    # -- settings, producers, coordinators --------------------------------------------------------

    def decide_alter_config(
        self,
        resource: ConfigResource,
        name: str,
        changes: Mapping[str, str | None],
        *,
        validate_only: bool = False,
    ) -> Decision[None]:
        """Set settings, or unset those whose value is None: all or none of them."""
        return metadata_configs.alter_config(self.image, resource, name, changes, validate_only)

    def decide_set_feature_level(self, name: str, level: int) -> Decision[None]:
        """Use a feature that every registered node understands."""
        return metadata_configs.set_feature_level(self.image, name, level)

    def decide_allocate_producer_ids(
        self, node_id: NodeId, broker_epoch: BrokerEpoch
    ) -> Decision[ProducerIds]:
        return metadata_configs.allocate_producer_ids(self.image, node_id, broker_epoch)

    def decide_assign_shards(self, kind: ShardKind) -> Decision[int]:
        """Spread the shards over the coordinators; replies how many change hands."""
        return metadata_shards.assign_shards(self.image, kind)
