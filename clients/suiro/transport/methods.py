"""Every rpc of the contract as a `Method`; a test compares this page with the .proto files."""

from __future__ import annotations

from suiro._proto import admin_pb2 as admin
from suiro._proto import broker_pb2 as broker
from suiro._proto import controller_pb2 as controller
from suiro._proto import founding_pb2 as founding
from suiro._proto import groupcoord_pb2 as groupcoord
from suiro._proto import node_pb2 as node
from suiro._proto import raft_pb2 as raft
from suiro._proto import txncoord_pb2 as txncoord
from suiro.transport.api import Kind, Method
from suiro.transport.framing import framed_codec, message_codec


class BrokerMethods:
    """The Broker service."""

    METADATA = Method(
        "/suiro.v1.Broker/Metadata",
        Kind.UNARY,
        message_codec(broker.MetadataRequest),
        message_codec(broker.MetadataReply),
    )
    WATCH_METADATA = Method(
        "/suiro.v1.Broker/WatchMetadata",
        Kind.SERVER_STREAM,
        message_codec(broker.MetadataRequest),
        message_codec(broker.MetadataReply),
    )
    PRODUCE = Method(
        "/suiro.v1.Broker/Produce",
        Kind.UNARY,
        framed_codec(broker.ProduceRequest),
        message_codec(broker.ProduceReply),
    )
    PRODUCE_STREAM = Method(
        "/suiro.v1.Broker/ProduceStream",
        Kind.BIDIRECTIONAL,
        framed_codec(broker.ProduceRequest),
        message_codec(broker.ProduceReply),
    )
    NEW_PRODUCER = Method(
        "/suiro.v1.Broker/NewProducer",
        Kind.UNARY,
        message_codec(broker.NewProducerRequest),
        message_codec(broker.NewProducerReply),
    )
    FETCH = Method(
        "/suiro.v1.Broker/Fetch",
        Kind.UNARY,
        message_codec(broker.FetchRequest),
        framed_codec(broker.FetchReply),
    )
    FETCH_STREAM = Method(
        "/suiro.v1.Broker/FetchStream",
        Kind.BIDIRECTIONAL,
        message_codec(broker.FetchStreamRequest),
        framed_codec(broker.FetchStreamReply),
    )
    LIST_OFFSETS = Method(
        "/suiro.v1.Broker/ListOffsets",
        Kind.UNARY,
        message_codec(broker.ListOffsetsRequest),
        message_codec(broker.ListOffsetsReply),
    )
    REPLICATE = Method(
        "/suiro.v1.Broker/Replicate",
        Kind.BIDIRECTIONAL,
        message_codec(broker.ReplicateRequest),
        framed_codec(broker.ReplicateReply),
    )
    WRITE_TXN_MARKERS = Method(
        "/suiro.v1.Broker/WriteTxnMarkers",
        Kind.UNARY,
        message_codec(broker.WriteTxnMarkersRequest),
        message_codec(broker.WriteTxnMarkersReply),
    )
    DELETE_RECORDS = Method(
        "/suiro.v1.Broker/DeleteRecords",
        Kind.UNARY,
        message_codec(broker.DeleteRecordsRequest),
        message_codec(broker.DeleteRecordsReply),
    )
    DESCRIBE_PRODUCERS = Method(
        "/suiro.v1.Broker/DescribeProducers",
        Kind.UNARY,
        message_codec(broker.DescribeProducersRequest),
        message_codec(broker.DescribeProducersReply),
    )
    MOVE_REPLICA = Method(
        "/suiro.v1.Broker/MoveReplica",
        Kind.UNARY,
        message_codec(broker.MoveReplicaRequest),
        message_codec(broker.MoveReplicaReply),
    )
    DESCRIBE_REPLICAS = Method(
        "/suiro.v1.Broker/DescribeReplicas",
        Kind.UNARY,
        message_codec(broker.DescribeReplicasRequest),
        message_codec(broker.DescribeReplicasReply),
    )


class ControllerMethods:
    """The Controller service."""

    REGISTER_NODE = Method(
        "/suiro.v1.Controller/RegisterNode",
        Kind.UNARY,
        message_codec(controller.RegisterNodeRequest),
        message_codec(controller.RegisterNodeReply),
    )
    NODE_SESSION = Method(
        "/suiro.v1.Controller/NodeSession",
        Kind.BIDIRECTIONAL,
        message_codec(controller.NodeHeartbeat),
        message_codec(controller.NodeNotice),
    )
    FOLLOW_METADATA = Method(
        "/suiro.v1.Controller/FollowMetadata",
        Kind.SERVER_STREAM,
        message_codec(controller.FollowMetadataRequest),
        message_codec(controller.MetadataFeed),
    )
    ALTER_PARTITIONS = Method(
        "/suiro.v1.Controller/AlterPartitions",
        Kind.UNARY,
        message_codec(controller.AlterPartitionsRequest),
        message_codec(controller.AlterPartitionsReply),
    )
    REPORT_REPLICAS = Method(
        "/suiro.v1.Controller/ReportReplicas",
        Kind.UNARY,
        message_codec(controller.ReportReplicasRequest),
        message_codec(controller.ReportReplicasReply),
    )
    ALLOCATE_PRODUCER_IDS = Method(
        "/suiro.v1.Controller/AllocateProducerIds",
        Kind.UNARY,
        message_codec(controller.AllocateProducerIdsRequest),
        message_codec(controller.AllocateProducerIdsReply),
    )
    CALLS = Method(
        "/suiro.v1.Controller/Calls",
        Kind.BIDIRECTIONAL,
        message_codec(controller.CallBatch),
        message_codec(controller.AnswerBatch),
    )


class FoundingMethods:
    """The Founding service."""

    INTRODUCE = Method(
        "/suiro.v1.Founding/Introduce",
        Kind.UNARY,
        message_codec(founding.Introduction),
        message_codec(founding.Introduction),
    )


class NodeMethods:
    """The Node service."""

    DESCRIBE = Method(
        "/suiro.v1.Node/Describe",
        Kind.UNARY,
        message_codec(node.DescribeNodeRequest),
        message_codec(node.DescribeNodeReply),
    )


class AdminMethods:
    """The Admin service."""

    CREATE_TOPICS = Method(
        "/suiro.v1.Admin/CreateTopics",
        Kind.UNARY,
        message_codec(admin.CreateTopicsRequest),
        message_codec(admin.CreateTopicsReply),
    )
    DELETE_TOPICS = Method(
        "/suiro.v1.Admin/DeleteTopics",
        Kind.UNARY,
        message_codec(admin.DeleteTopicsRequest),
        message_codec(admin.DeleteTopicsReply),
    )
    ADD_PARTITIONS = Method(
        "/suiro.v1.Admin/AddPartitions",
        Kind.UNARY,
        message_codec(admin.AddTopicPartitionsRequest),
        message_codec(admin.AddTopicPartitionsReply),
    )
    DESCRIBE_CONFIGS = Method(
        "/suiro.v1.Admin/DescribeConfigs",
        Kind.UNARY,
        message_codec(admin.DescribeConfigsRequest),
        message_codec(admin.DescribeConfigsReply),
    )
    ALTER_CONFIGS = Method(
        "/suiro.v1.Admin/AlterConfigs",
        Kind.UNARY,
        message_codec(admin.AlterConfigsRequest),
        message_codec(admin.AlterConfigsReply),
    )
    ELECT_LEADERS = Method(
        "/suiro.v1.Admin/ElectLeaders",
        Kind.UNARY,
        message_codec(admin.ElectLeadersRequest),
        message_codec(admin.ElectLeadersReply),
    )
    ALTER_REASSIGNMENTS = Method(
        "/suiro.v1.Admin/AlterReassignments",
        Kind.UNARY,
        message_codec(admin.AlterReassignmentsRequest),
        message_codec(admin.AlterReassignmentsReply),
    )
    LIST_REASSIGNMENTS = Method(
        "/suiro.v1.Admin/ListReassignments",
        Kind.UNARY,
        message_codec(admin.ListReassignmentsRequest),
        message_codec(admin.ListReassignmentsReply),
    )
    DESCRIBE_CLUSTER = Method(
        "/suiro.v1.Admin/DescribeCluster",
        Kind.UNARY,
        message_codec(admin.DescribeClusterRequest),
        message_codec(admin.DescribeClusterReply),
    )
    UNREGISTER_NODE = Method(
        "/suiro.v1.Admin/UnregisterNode",
        Kind.UNARY,
        message_codec(admin.UnregisterNodeRequest),
        message_codec(admin.UnregisterNodeReply),
    )
    DESCRIBE_QUORUM = Method(
        "/suiro.v1.Admin/DescribeQuorum",
        Kind.UNARY,
        message_codec(admin.DescribeQuorumRequest),
        message_codec(admin.DescribeQuorumReply),
    )
    ADD_CONTROLLER = Method(
        "/suiro.v1.Admin/AddController",
        Kind.UNARY,
        message_codec(admin.AddControllerRequest),
        message_codec(admin.AddControllerReply),
    )
    REMOVE_CONTROLLER = Method(
        "/suiro.v1.Admin/RemoveController",
        Kind.UNARY,
        message_codec(admin.RemoveControllerRequest),
        message_codec(admin.RemoveControllerReply),
    )
    TRANSFER_CONTROLLER = Method(
        "/suiro.v1.Admin/TransferController",
        Kind.UNARY,
        message_codec(admin.TransferControllerRequest),
        message_codec(admin.TransferControllerReply),
    )


class RaftMethods:
    """The Raft service."""

    STEP = Method(
        "/suiro.v1.Raft/Step",
        Kind.BIDIRECTIONAL,
        message_codec(raft.RaftEnvelope),
        message_codec(raft.RaftWelcome),
    )


class GroupCoordinatorMethods:
    """The GroupCoordinator service."""

    FIND_COORDINATOR = Method(
        "/suiro.v1.GroupCoordinator/FindCoordinator",
        Kind.UNARY,
        message_codec(groupcoord.FindGroupCoordinatorRequest),
        message_codec(groupcoord.FindGroupCoordinatorReply),
    )
    SESSION = Method(
        "/suiro.v1.GroupCoordinator/Session",
        Kind.BIDIRECTIONAL,
        message_codec(groupcoord.MemberMessage),
        message_codec(groupcoord.MemberNotice),
    )
    COMMIT_OFFSETS = Method(
        "/suiro.v1.GroupCoordinator/CommitOffsets",
        Kind.UNARY,
        message_codec(groupcoord.CommitOffsetsRequest),
        message_codec(groupcoord.CommitOffsetsReply),
    )
    FETCH_OFFSETS = Method(
        "/suiro.v1.GroupCoordinator/FetchOffsets",
        Kind.UNARY,
        message_codec(groupcoord.FetchOffsetsRequest),
        message_codec(groupcoord.FetchOffsetsReply),
    )
    SETTLE_OFFSETS = Method(
        "/suiro.v1.GroupCoordinator/SettleOffsets",
        Kind.UNARY,
        message_codec(groupcoord.SettleOffsetsRequest),
        message_codec(groupcoord.SettleOffsetsReply),
    )
    LIST_GROUPS = Method(
        "/suiro.v1.GroupCoordinator/ListGroups",
        Kind.UNARY,
        message_codec(groupcoord.ListGroupsRequest),
        message_codec(groupcoord.ListGroupsReply),
    )
    DESCRIBE_GROUP = Method(
        "/suiro.v1.GroupCoordinator/DescribeGroup",
        Kind.UNARY,
        message_codec(groupcoord.DescribeGroupRequest),
        message_codec(groupcoord.DescribeGroupReply),
    )
    DELETE_GROUP = Method(
        "/suiro.v1.GroupCoordinator/DeleteGroup",
        Kind.UNARY,
        message_codec(groupcoord.DeleteGroupRequest),
        message_codec(groupcoord.DeleteGroupReply),
    )


class TxnCoordinatorMethods:
    """The TxnCoordinator service."""

    FIND_COORDINATOR = Method(
        "/suiro.v1.TxnCoordinator/FindCoordinator",
        Kind.UNARY,
        message_codec(txncoord.FindTxnCoordinatorRequest),
        message_codec(txncoord.FindTxnCoordinatorReply),
    )
    INIT_PRODUCER = Method(
        "/suiro.v1.TxnCoordinator/InitProducer",
        Kind.UNARY,
        message_codec(txncoord.InitProducerRequest),
        message_codec(txncoord.InitProducerReply),
    )
    ADD_PARTITIONS = Method(
        "/suiro.v1.TxnCoordinator/AddPartitions",
        Kind.UNARY,
        message_codec(txncoord.AddPartitionsRequest),
        message_codec(txncoord.AddPartitionsReply),
    )
    ADD_OFFSETS = Method(
        "/suiro.v1.TxnCoordinator/AddOffsets",
        Kind.UNARY,
        message_codec(txncoord.AddOffsetsRequest),
        message_codec(txncoord.AddOffsetsReply),
    )
    VERIFY_PARTITIONS = Method(
        "/suiro.v1.TxnCoordinator/VerifyPartitions",
        Kind.UNARY,
        message_codec(txncoord.VerifyPartitionsRequest),
        message_codec(txncoord.VerifyPartitionsReply),
    )
    END_TXN = Method(
        "/suiro.v1.TxnCoordinator/EndTxn",
        Kind.UNARY,
        message_codec(txncoord.EndTxnRequest),
        message_codec(txncoord.EndTxnReply),
    )
    OPEN_SHARED = Method(
        "/suiro.v1.TxnCoordinator/OpenShared",
        Kind.UNARY,
        message_codec(txncoord.OpenSharedRequest),
        message_codec(txncoord.OpenSharedReply),
    )
    PREPARE_WRITER = Method(
        "/suiro.v1.TxnCoordinator/PrepareWriter",
        Kind.UNARY,
        message_codec(txncoord.PrepareWriterRequest),
        message_codec(txncoord.PrepareWriterReply),
    )
    END_SHARED = Method(
        "/suiro.v1.TxnCoordinator/EndShared",
        Kind.UNARY,
        message_codec(txncoord.EndSharedRequest),
        message_codec(txncoord.EndSharedReply),
    )
    LIST_TRANSACTIONS = Method(
        "/suiro.v1.TxnCoordinator/ListTransactions",
        Kind.UNARY,
        message_codec(txncoord.ListTransactionsRequest),
        message_codec(txncoord.ListTransactionsReply),
    )
    DESCRIBE_TRANSACTION = Method(
        "/suiro.v1.TxnCoordinator/DescribeTransaction",
        Kind.UNARY,
        message_codec(txncoord.DescribeTransactionRequest),
        message_codec(txncoord.DescribeTransactionReply),
    )
    ABORT_TRANSACTION = Method(
        "/suiro.v1.TxnCoordinator/AbortTransaction",
        Kind.UNARY,
        message_codec(txncoord.AbortTransactionRequest),
        message_codec(txncoord.AbortTransactionReply),
    )
