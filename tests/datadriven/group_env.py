"""The group machine as a transcript sees it: one group, its members, a clock.

Every command prints how the members stand that it changed: `a epoch 3: orders-0 (gives up
orders-1)`. `failover` throws the machine away and rebuilds it from the compacted records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suiro.model.error_base import SuiroError
from suiro.model.ids import (
    LeaderEpoch,
    Offset,
    ProducerEpoch,
    ProducerId,
    TopicId,
    TopicPartition,
)

from cluster.groupcoord.codec import decode, encode
from cluster.groupcoord.machine import GroupMachine
from cluster.groupcoord.requests import (
    Commit,
    CommitRequest,
    Computed,
    Fenced,
    Message,
    Notify,
    Settle,
)
from cluster.groupcoord.subscriptions import TopicFact

if TYPE_CHECKING:
    from collections.abc import Callable

    from cluster.host.machine import Decision

Words = list[str]
Options = dict[str, str]


class GroupEnv:
    """One coordinator of the group `g`."""

    def __init__(self) -> None:
        self.machine = GroupMachine()
        self.log: dict[bytes, bytes] = {}
        self.now = 0
        self.streams: dict[str, int] = {}
        self.facts: dict[str, TopicFact] = {}
        self.said: dict[str, Message] = {}
        self.commands: dict[str, Callable[[Words, Options], str]] = {
            "topics": self.topics,
            "join": self.join,
            "say": self.say,
            "leave": self.leave,
            "compute": self.compute,
            "tick": self.tick,
            "days": self.days,
            "break": self.break_stream,
            "failover": self.failover,
            "commit": self.commit,
            "fetch": self.fetch,
            "settle": self.settle,
            "delete": self.delete,
            "show": self.show,
            "history": self.history,
        }

    def run(self, command: str, arguments: list[str]) -> str:
        words = [word for word in arguments if "=" not in word]
        options = dict(word.split("=", 1) for word in arguments if "=" in word)
        try:
            return self.commands[command](words, options)
        except SuiroError as error:
            return f"{type(error).__name__}: {error.message}"

    def carry_out(self, decision: Decision[Any]) -> list[str]:
        """Apply and store it; what it tells whom."""
        for record in decision.records:
            self.machine.apply(record)
            key, value = encode(record)
            if value is None:
                self.log.pop(key, None)
            else:
                self.log[key] = value
        self.machine.next_deadline_ms(self.now)
        lines = []
        for effect in decision.effects:
            match effect:
                case Fenced(_, member_id, error):
                    lines.append(f"{member_id} is out: {type(error).__name__}")
                case Notify(_, member_id):
                    lines.append(self.member(member_id))
                case _:
                    raise AssertionError(effect)
        return lines

    # -- members ----------------------------------------------------------------------------------

    def topics(self, words: Words, options: Options) -> str:
        """topics NAME=PARTITIONS[:ID] …"""
        for name, what in options.items():
            partitions, _, number = what.partition(":")
            self.facts[name] = TopicFact(TopicId(bytes([int(number or 1)]) * 16), int(partitions))
        self.machine.on_topics(self.facts)
        return ""

    def join(self, words: Words, options: Options) -> str:
        """join MEMBER [topics=a,b] [pattern=p] [static=i] [assignors=a,b] [version=n]"""
        message = Message(
            group="g",
            member_id=words[0],
            instance_id=options.get("static", ""),
            topics=tuple(options["topics"].split(",")) if "topics" in options else (),
            pattern=options.get("pattern", ""),
            assignors=tuple(options["assignors"].split(",")) if "assignors" in options else (),
            session_timeout_ms=1_000,
            rebalance_timeout_ms=5_000,
            subscription_version=int(options.get("version", 1)),
        )
        self.said[words[0]] = message
        return self.speak(message)

    def say(self, words: Words, options: Options) -> str:
        """say MEMBER [epoch=n] [owned=a-0,b-1]: by default it has done all that it was told."""
        member_id = words[0]
        member = self.group.members.get(member_id)
        epoch = options.get("epoch", "0" if member is None else str(member.member_epoch))
        owned = () if member is None else member.assigned
        if "owned" in options:
            owned = tuple(map(_named, filter(None, options["owned"].split(","))))
        said = self.said.get(member_id)
        return self.speak(
            Message(
                group="g",
                member_id=member_id,
                member_epoch=int(epoch),
                owned=frozenset(owned),
                instance_id="" if said is None else said.instance_id,
            )
        )

    def compute(self, words: Words, options: Options) -> str:
        """compute MEMBER epoch=n a=orders-0,orders-1 b=…"""
        epoch = int(options.pop("epoch"))
        assignment = {
            member_id: tuple(map(_named, filter(None, listed.split(","))))
            for member_id, listed in options.items()
        }
        member = self.group.members[words[0]]
        return self.speak(
            Message(
                group="g",
                member_id=words[0],
                member_epoch=member.member_epoch,
                owned=frozenset(member.assigned),
                computed=Computed(epoch, assignment),
            )
        )

    def speak(self, message: Message) -> str:
        stream = self.streams.setdefault(message.member_id, 1)
        self.machine.on_heard("g", message.member_id, stream, self.now)
        decision = self.machine.decide_message(message, self.now)
        lines = self.carry_out(decision)
        self.machine.on_heard("g", message.member_id, stream, self.now)
        own = self.member(message.member_id)
        return "\n".join([own, *(line for line in lines if line != own)])

    def leave(self, words: Words, options: Options) -> str:
        return "\n".join(self.carry_out(self.machine.decide_leave("g", words[0], "", self.now)))

    # -- time and failures ------------------------------------------------------------------------

    def tick(self, words: Words, options: Options) -> str:
        """tick MS [quiet=a,b]: all but these are heard all the time."""
        end = self.now + int(words[0])
        quiet = options.get("quiet", "").split(",")
        lines: list[str] = []
        while self.now < end:
            self.now = min(self.now + 10, end)
            for member_id in self.group.members:
                if member_id not in quiet:
                    stream = self.streams.get(member_id, 1)
                    self.machine.on_heard("g", member_id, stream, self.now)
            due = self.machine.next_deadline_ms(self.now)
            if due is not None and due <= self.now:
                lines += self.carry_out(self.machine.decide_expire(self.now, self.now))
                self.machine.on_swept(self.now)
        return "\n".join(lines)

    def days(self, words: Words, options: Options) -> str:
        """days N: so much later, without anybody being heard."""
        self.now += int(words[0]) * 24 * 3600 * 1000
        lines = self.carry_out(self.machine.decide_expire(self.now, self.now))
        self.machine.on_swept(self.now)
        return "\n".join([*lines, f"{len(self.log)} keys are left"])

    def break_stream(self, words: Words, options: Options) -> str:
        stream = self.streams[words[0]]
        self.streams[words[0]] = stream + 1
        self.machine.on_broken("g", words[0], stream, self.now)
        return ""

    def failover(self, words: Words, options: Options) -> str:
        self.machine = GroupMachine()
        for key, value in self.log.items():
            self.machine.apply(decode(key, value))
        self.streams.clear()
        if "blind" not in words:
            self.machine.on_topics(self.facts)
        self.machine.next_deadline_ms(self.now)
        return ""

    # -- offsets ----------------------------------------------------------------------------------

    def commit(self, words: Words, options: Options) -> str:
        """commit MEMBER|outside [reset] [epoch=n] [txn=id.epoch] [topic_id=n] orders-0=5 …"""
        member_id = "" if words[0] == "outside" else words[0]
        member = self.group.members.get(member_id)
        producer = options.pop("txn", "-1.-1").split(".")
        epoch = int(options.pop("epoch", 0 if member is None else member.member_epoch))
        topic_id = TopicId(bytes([int(options.pop("topic_id", 1))]) * 16)
        request = CommitRequest(
            group="g",
            member_id=member_id,
            member_epoch=epoch,
            offsets=tuple(
                Commit(
                    _named(name),
                    Offset(int(offset)),
                    LeaderEpoch(7),
                    "note",
                    topic_id,
                    reset="reset" in words,
                )
                for name, offset in options.items()
            ),
            producer_id=ProducerId(int(producer[0])),
            producer_epoch=ProducerEpoch(int(producer[1])),
        )
        decision = self.machine.decide_commit(request, self.now)
        self.carry_out(decision)
        return "\n".join(
            f"{o.partition}: " + ("ok" if o.error is None else f"{type(o.error).__name__}")
            for o in decision.reply
        )

    def fetch(self, words: Words, options: Options) -> str:
        wanted = [_named(word) for word in words if word != "stable"]
        found = self.machine.fetch("g", wanted, require_stable="stable" in words)
        lines = []
        for one in found:
            if one.error is not None:
                lines.append(f"{one.partition}: {type(one.error).__name__}")
            elif one.committed is None:
                lines.append(f"{one.partition}: none")
            else:
                known = one.committed
                lines.append(
                    f"{one.partition}: {known.offset} leader epoch {known.leader_epoch} "
                    f"{known.metadata}"
                )
        return "\n".join(lines)

    def settle(self, words: Words, options: Options) -> str:
        """settle ID.EPOCH commit|abort"""
        producer_id, epoch = words[0].split(".")
        end = Settle(
            "g", ProducerId(int(producer_id)), ProducerEpoch(int(epoch)), words[1] == "commit"
        )
        decision = self.machine.decide_settle(end, self.now)
        self.carry_out(decision)
        return "ok" if decision.records else "ok, nothing changes"

    def delete(self, words: Words, options: Options) -> str:
        self.carry_out(self.machine.decide_delete("g", [_named(word) for word in words]))
        return f"{len(self.log)} keys are left"

    # -- printing ---------------------------------------------------------------------------------

    @property
    def group(self) -> Any:
        return self.machine._group("g")

    def member(self, member_id: str) -> str:
        standing = self.machine.standing("g", member_id)
        text = f"{member_id} epoch {standing.member_epoch}: {_listed(standing.assigned)}"
        revoking = self.group.members[member_id].revoking
        if revoking:
            text += f" (gives up {_listed(revoking)})"
        if standing.compute is not None:
            text += f" (computes {standing.compute.assignor} for {standing.compute.group_epoch})"
        return text

    def show(self, words: Words, options: Options) -> str:
        lines = [f"{self.group.phase.value}, epoch {self.group.state.epoch}"]
        lines += [self.member(member_id) for member_id in sorted(self.group.members)]
        return "\n".join(lines)

    def history(self, words: Words, options: Options) -> str:
        return "\n".join(
            f"{done.epoch}: {done.reason}, {done.moved} moved"
            for done in self.machine.describe("g").history
        )


def _named(word: str) -> TopicPartition:
    topic, partition = word.rsplit("-", 1)
    return TopicPartition(topic, int(partition))


def _listed(partitions: tuple[TopicPartition, ...]) -> str:
    return ",".join(map(str, partitions)) or "nothing"
