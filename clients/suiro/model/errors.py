"""Every error that Suiro raises, as one tree.

    SuiroError
     ├─ InvalidRequest, UnsupportedVersion, InternalError            the request itself
     ├─ Unavailable, TimedOut, Overloaded, ShuttingDown              the other side is away or busy
     ├─ CorruptBatch, BatchTooLarge                                  the bytes
     ├─ UnknownTopicOrPartition, TopicExists, NotLeader, …           topics and partitions
     ├─ OutOfOrderSequence, ProducerFenced, …                        producers
     ├─ NotController, StaleBrokerEpoch, ClusterIdMismatch, …        the metadata quorum
     ├─ NotCoordinator, UnknownMember, InvalidTransaction, …         groups and transactions
     └─ DeliveryTimedOut, BufferFull, ClientClosed, …                raised by the SDK only

A class has one code, which is what travels; says whether trying again can help; and carries
`advice`, what a person should do. What a program needs (who leads now, where the log starts) is in
`hints`, which travel too. The message says what happened; `str(error)` is message and advice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from suiro.model.error_base import ErrorCode, SuiroError

if TYPE_CHECKING:
    from suiro.model.ids import NodeId, TopicPartition


# -- the request itself ---------------------------------------------------------------------------


class InternalError(SuiroError):
    """A defect of ours. The node's log has the traceback under the same request id."""

    code = ErrorCode.INTERNAL
    advice = "This is a bug in Suiro; please report it with the node's log"


class InvalidRequest(SuiroError):
    """A field is missing, out of bounds, or contradicts another."""

    code = ErrorCode.INVALID_REQUEST


class UnsupportedVersion(SuiroError):
    """The two sides share no protocol version."""

    code = ErrorCode.UNSUPPORTED_VERSION
    advice = "Upgrade the older side"


class Unauthenticated(SuiroError):
    """The caller did not prove who it is."""

    code = ErrorCode.UNAUTHENTICATED
    advice = "Check the credentials in the connection settings"


class Unauthorized(SuiroError):
    """The caller is known, and may not do this."""

    code = ErrorCode.UNAUTHORIZED
    advice = "Ask an administrator for an ACL that allows it"


# -- the other side is not there, or busy ---------------------------------------------------------


class Unavailable(SuiroError):
    """Nobody answers at that address, or the connection broke."""

    code = ErrorCode.UNAVAILABLE
    retriable = True
    advice = "Check that the cluster is up and the address is right (`suiro up` starts one here)"


class TimedOut(SuiroError):
    """The answer did not come in time; whether the request took effect is unknown."""

    code = ErrorCode.TIMED_OUT
    retriable = True


class Overloaded(SuiroError):
    """A bounded queue is full; nothing was done."""

    code = ErrorCode.OVERLOADED
    retriable = True
    advice = "Slow down or try again later"


class ShuttingDown(SuiroError):
    """The node is stopping and takes no new work."""

    code = ErrorCode.SHUTTING_DOWN
    retriable = True


# -- the bytes ------------------------------------------------------------------------------------


class CorruptBatch(SuiroError):
    """The bytes are not a batch that anyone wrote: bad CRC, impossible lengths, unknown flags."""

    code = ErrorCode.CORRUPT_BATCH


class BatchTooLarge(SuiroError):
    """The batch is over the limit of its topic or of the protocol."""

    code = ErrorCode.BATCH_TOO_LARGE
    advice = "Send smaller batches or raise max.message.bytes of the topic"


# -- topics and partitions ------------------------------------------------------------------------


class UnknownTopicOrPartition(SuiroError):
    """No such topic or partition; retriable, as a new topic takes a moment to be known."""

    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    retriable = True
    advice = "Check the name with `suiro topic list`, or make it with `suiro topic create`"


class TopicExists(SuiroError):
    """A topic of that name is there already."""

    code = ErrorCode.TOPIC_EXISTS


class InvalidTopic(SuiroError):
    """The name or the number of partitions is not allowed."""

    code = ErrorCode.INVALID_TOPIC


class InvalidReplicationFactor(SuiroError):
    """More replicas asked for than there are brokers, or none at all."""

    code = ErrorCode.INVALID_REPLICATION_FACTOR


class InvalidConfig(SuiroError):
    """No such setting, or a value outside its bounds."""

    code = ErrorCode.INVALID_CONFIG


class NotLeader(SuiroError):
    """This broker does not lead the partition; `leader` says who does, as far as it knows."""

    code = ErrorCode.NOT_LEADER
    retriable = True

    def __init__(self, partition: TopicPartition, leader: NodeId | None) -> None:
        known = {} if leader is None else {"leader": int(leader)}
        super().__init__(f"{partition}: led by {'nobody' if leader is None else leader}", **known)

    @property
    def leader(self) -> int | None:
        return self.hint_int("leader")


class LeaderNotAvailable(SuiroError):
    """No replica in the ISR is alive, so nobody may lead."""

    code = ErrorCode.LEADER_NOT_AVAILABLE
    retriable = True
    advice = "It comes back with the first in-sync replica; `suiro why` names them"


class FencedLeaderEpoch(SuiroError):
    """The caller's leader epoch is older than the partition's: it must refresh its metadata."""

    code = ErrorCode.FENCED_LEADER_EPOCH
    retriable = True


class UnknownLeaderEpoch(SuiroError):
    """The caller's leader epoch is newer than this broker's: the broker has to catch up."""

    code = ErrorCode.UNKNOWN_LEADER_EPOCH
    retriable = True


class NotEnoughReplicas(SuiroError):
    """acks=all is refused: fewer replicas are in sync than min.insync.replicas asks for."""

    code = ErrorCode.NOT_ENOUGH_REPLICAS
    retriable = True
    advice = "It works again by itself when a follower has caught up"


class OffsetOutOfRange(SuiroError):
    """The offset is not in the log; the hints `start` and `end` say what is."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE

    def __init__(self, partition: TopicPartition, offset: int, start: int, end: int) -> None:
        super().__init__(
            f"{partition}: offset {offset} is outside [{start}, {end}]", start=start, end=end
        )


class OffsetNotAvailable(SuiroError):
    """A new leader does not know its high watermark yet; it will within a round trip."""

    code = ErrorCode.OFFSET_NOT_AVAILABLE
    retriable = True


class StorageFailed(SuiroError):
    """The disk under the partition gave an error; this replica is offline."""

    code = ErrorCode.STORAGE_FAILED
    retriable = True
    advice = "Another replica takes over; replace the disk"


class DiskFull(SuiroError):
    """There is no room for the write; nothing of it was stored."""

    code = ErrorCode.DISK_FULL
    retriable = True
    advice = "Free space, shorten the retention, or add a broker"


class TopicIdMismatch(SuiroError):
    """The topic was deleted and made again under the same name since the caller learnt of it."""

    code = ErrorCode.TOPIC_ID_MISMATCH


class PositionTruncated(SuiroError):
    """The records before this position were replaced by an unclean election."""

    code = ErrorCode.POSITION_TRUNCATED


class ReassignmentInProgress(SuiroError):
    """The partition is being moved already."""

    code = ErrorCode.REASSIGNMENT_IN_PROGRESS
    advice = "Wait for it (`suiro reassign status`) or cancel it"


class NoReassignment(SuiroError):
    """There is no reassignment to cancel."""

    code = ErrorCode.NO_REASSIGNMENT


# -- producers ------------------------------------------------------------------------------------


class OutOfOrderSequence(SuiroError):
    """A batch does not follow the producer's last one; `expected` is the sequence that would."""

    code = ErrorCode.OUT_OF_ORDER_SEQUENCE


class UnknownProducer(SuiroError):
    """The partition remembers nothing of this producer id, and the batch is not its first."""

    code = ErrorCode.UNKNOWN_PRODUCER


class ProducerFenced(SuiroError):
    """A newer instance of the same producer has taken over."""

    code = ErrorCode.PRODUCER_FENCED
    advice = "Only one instance may use a transactional id; stop this one"


# -- transactions ---------------------------------------------------------------------------------


class InvalidTransaction(SuiroError):
    """The transaction is not in a state that allows this."""

    code = ErrorCode.INVALID_TRANSACTION


class TransactionTimedOut(SuiroError):
    """The transaction was open for longer than its timeout and has been aborted."""

    code = ErrorCode.TRANSACTION_TIMED_OUT


class ConcurrentTransaction(SuiroError):
    """The previous transaction of this id is still being completed."""

    code = ErrorCode.CONCURRENT_TRANSACTION
    retriable = True


class TransactionAborted(SuiroError):
    """The transaction can only be aborted now."""

    code = ErrorCode.TRANSACTION_ABORTED


class AlreadyCommitted(SuiroError):
    """A shared transaction with this token was committed before: there is nothing left to write."""

    code = ErrorCode.ALREADY_COMMITTED


class StaleBatch(SuiroError):
    """A newer batch of the same query was committed before: the checkpoint is stale."""

    code = ErrorCode.STALE_BATCH


# -- coordinators and groups ----------------------------------------------------------------------


class NotCoordinator(SuiroError):
    """This node does not own the shard; the hint `owner` says who does."""

    code = ErrorCode.NOT_COORDINATOR
    retriable = True


class CoordinatorLoading(SuiroError):
    """The coordinator is replaying its partition."""

    code = ErrorCode.COORDINATOR_LOADING
    retriable = True


class StaleOwnerEpoch(SuiroError):
    """Another coordinator owns the shard now; this one may write nothing more."""

    code = ErrorCode.STALE_OWNER_EPOCH


class UnknownMember(SuiroError):
    """The group does not know this member (any more): it must join again."""

    code = ErrorCode.UNKNOWN_MEMBER


class StaleMemberEpoch(SuiroError):
    """The member acted on an assignment that is no longer its own."""

    code = ErrorCode.STALE_MEMBER_EPOCH


class FencedInstance(SuiroError):
    """Another process has joined with the same static instance id."""

    code = ErrorCode.FENCED_INSTANCE
    advice = "Give every process its own instance id"


class GroupNotEmpty(SuiroError):
    """The group has active members, so its offsets may not be changed from outside."""

    code = ErrorCode.GROUP_NOT_EMPTY
    advice = "Stop its consumers first"


class UnknownGroup(SuiroError):
    """No such consumer group."""

    code = ErrorCode.UNKNOWN_GROUP


class UnstableOffset(SuiroError):
    """An open transaction is about to decide this offset."""

    code = ErrorCode.UNSTABLE_OFFSET
    retriable = True


class UnsupportedAssignor(SuiroError):
    """The members of the group share no assignor."""

    code = ErrorCode.UNSUPPORTED_ASSIGNOR


# -- the metadata quorum --------------------------------------------------------------------------


class NotController(SuiroError):
    """This controller does not lead the quorum; `leader` says who does, if known."""

    code = ErrorCode.NOT_CONTROLLER
    retriable = True

    def __init__(self, leader: NodeId | None) -> None:
        known = {} if leader is None else {"leader": int(leader)}
        super().__init__(f"the quorum is led by {'nobody' if leader is None else leader}", **known)

    @property
    def leader(self) -> int | None:
        return self.hint_int("leader")


class StaleBrokerEpoch(SuiroError):
    """The broker has registered again since, or was never registered."""

    code = ErrorCode.STALE_BROKER_EPOCH


class StalePartitionEpoch(SuiroError):
    """The partition has changed since the caller looked; it must look again."""

    code = ErrorCode.STALE_PARTITION_EPOCH


class ClusterIdMismatch(SuiroError):
    """The node belongs to another cluster."""

    code = ErrorCode.CLUSTER_ID_MISMATCH
    advice = "Check the addresses and the data directory; a node never changes its cluster"


class NotFormatted(SuiroError):
    """The data directory has not been formatted for a cluster."""

    code = ErrorCode.NOT_FORMATTED
    advice = "Run `suiro storage format` on it once"


class DuplicateNode(SuiroError):
    """Another live process has registered with the same node id."""

    code = ErrorCode.DUPLICATE_NODE
    advice = "Give every node its own id"


class MembershipChangePending(SuiroError):
    """The quorum changes by one member at a time, and a change is under way."""

    code = ErrorCode.MEMBERSHIP_CHANGE_PENDING
    retriable = True


class UnknownBroker(SuiroError):
    """No broker with that id is registered."""

    code = ErrorCode.UNKNOWN_BROKER


class BrokerFenced(SuiroError):
    """The controller has fenced this broker: it was silent for too long and may not serve."""

    code = ErrorCode.BROKER_FENCED
    retriable = True


# -- raised by the SDK only -----------------------------------------------------------------------


class DeliveryTimedOut(SuiroError):
    """A record could not be delivered before its deadline; the cause is chained."""

    code = ErrorCode.DELIVERY_TIMED_OUT


class BufferFull(SuiroError):
    """The producer's buffer stayed full for longer than max_block_ms."""

    code = ErrorCode.BUFFER_FULL
    retriable = True
    advice = "The brokers take less than is sent: slow down or raise buffer_memory"


class ClientClosed(SuiroError):
    """The client has been closed."""

    code = ErrorCode.CLIENT_CLOSED


class NoPosition(SuiroError):
    """There is no position to start from, and auto_offset_reset is `none`."""

    code = ErrorCode.NO_POSITION


class InvalidSetting(SuiroError):
    """A client setting that does not exist or has a value outside its bounds."""

    code = ErrorCode.INVALID_SETTING
