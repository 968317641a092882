"""Transactions as a transcript sees them: the coordinator's machine, and partitions to write to.

An identity prints as `7.2`: producer id 7, epoch 2. A decision prints the new state of what it
changes, the markers that leave, and the reply after an arrow. Partitions have the real producer
states; `broker` asks the coordinator before it opens a transaction, as a real one does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suiro.model.batch import read_header
from suiro.model.control import ControlType, Marker, decode_marker, encode_marker
from suiro.model.error_base import SuiroError
from suiro.model.ids import (
    Offset,
    ProducerEpoch,
    ProducerId,
    ProducerIdentity,
    TopicPartition,
)

from cluster.broker.txn_verify import opens_transaction
from cluster.broker.visible import visible_batches
from cluster.log.producers import Duplicate
from cluster.log.state import LogState
from cluster.txncoord.codec import decode, encode
from cluster.txncoord.machine import TxnMachine
from cluster.txncoord.records import TxnForgotten
from cluster.txncoord.requests import (
    Completing,
    EndShared,
    Init,
    Joined,
    Marked,
    Open,
    Places,
    SendMarkers,
    SharedEnd,
)
from cluster.txncoord.table import TxnLimits
from cluster.txncoord.txn import NOBODY, Txn, TxnState
from tests.unit.log.kit import batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from cluster.host.machine import Decision
    from cluster.txncoord.records import TxnRecord


class TxnEnv:
    """One shard's coordinator with a compacted log, and partitions by name."""

    def __init__(self) -> None:
        self.limits = TxnLimits()
        self.machine = TxnMachine(self.limits)
        self.newest: dict[bytes, bytes | None] = {}
        self.next_id = 1
        self.now_ms = 0
        self.logs: dict[str, list[bytes]] = {}
        self.states: dict[str, LogState] = {}
        self.commands: dict[str, Callable[[list[str], dict[str, str]], Decision[Any]]] = {
            "init": self.init,
            "add": self.add,
            "verify": self.verify,
            "end": self.end,
            "marked": self.marked,
            "expire": lambda _w, _o: self.machine.decide_expire(self.now_ms),
            "forget": lambda _w, _o: self.machine.decide_forget(self.now_ms),
            "abort": lambda w, _o: self.machine.decide_abort(w[0], "an operator", self.now_ms),
            "open": self.open,
            "prepare": self.prepare,
            "end-shared": self.end_shared,
        }
        self.facts: dict[str, Callable[[list[str], dict[str, str]], str]] = {
            "epochs": self.epochs,
            "wait": self.wait,
            "take-over": self.take_over,
            "show": lambda w, _o: "\n".join(map(self.show, w)),
            "list": self.listed,
            "produce": self.produce,
            "marker": self.marker,
            "read": self.read,
        }
        self.refill()

    def run(self, command: str, arguments: list[str]) -> str:
        words = [word for word in arguments if "=" not in word]
        options = dict(word.split("=", 1) for word in arguments if "=" in word)
        try:
            if command in self.facts:
                return self.facts[command](words, options)
            decision = self.commands[command](words, options)
        except SuiroError as error:
            return f"{type(error).__name__}: {error.message}"
        for record in decision.records:
            self.machine.apply(record)
            self.newest.update([encode(record)])
        self.refill()
        lines = [self.record(record) for record in decision.records]
        lines += [line for effect in decision.effects for line in _markers(effect)]
        return "\n".join((*lines, f"-> {_reply(decision.reply)}"))

    # -- facts ------------------------------------------------------------------------------------

    def epochs(self, words: list[str], _options: dict[str, str]) -> str:
        """epochs MAX: a tiny space of epochs"""
        self.limits = TxnLimits(epoch_max=int(words[0]))
        self.next_id = 1
        return self.take_over([], {})

    def wait(self, words: list[str], _options: dict[str, str]) -> str:
        self.now_ms += int(words[0])
        deadline = self.machine.next_deadline_ms()
        return f"at {self.now_ms}, next deadline {'none' if deadline is None else deadline}"

    def take_over(self, _words: list[str], _options: dict[str, str]) -> str:
        """Another coordinator reads the newest record of every key."""
        self.machine = TxnMachine(self.limits)
        for key in sorted(self.newest):
            self.machine.apply(decode(key, self.newest[key]))
        self.refill()
        work = [line for effect in self.machine.open_work() for line in _markers(effect)]
        return "\n".join(work) or "nothing is open"

    def listed(self, words: list[str], _options: dict[str, str]) -> str:
        states = [TxnState(word) for word in words]
        found = self.machine.transactions(states)
        return "\n".join(_txn(txn) for txn in found) or "none"

    def show(self, name: str) -> str:
        txn = self.machine.get(name)
        return "unknown" if txn is None else _txn(txn)

    def refill(self) -> None:
        if self.machine.wants_producer_ids:
            start, self.next_id = self.next_id, self.next_id + 100
            self.machine.on_producer_ids(ProducerId(start), ProducerId(self.next_id))

    # -- decisions --------------------------------------------------------------------------------

    def init(self, words: list[str], options: dict[str, str]) -> Decision[Any]:
        """init ID [by=CLIENT] [go-on=7.2] [timeout=MS]"""
        go_on = _identity(options["go-on"]) if "go-on" in options else NOBODY
        timeout_ms = int(options.get("timeout", 1000))
        request = Init(words[0], timeout_ms, options.get("by", "somebody"), go_on)
        return self.machine.decide_init(request, self.now_ms)

    def add(self, words: list[str], _options: dict[str, str]) -> Decision[Any]:
        """add ID 7.2 PLACE…, where a group is written group:NAME"""
        return self.machine.decide_add(
            words[0], _identity(words[1]), _places(words[2:]), self.now_ms
        )

    def verify(self, words: list[str], _options: dict[str, str]) -> Decision[Any]:
        return self.machine.decide_verify(words[0], _identity(words[1]), _places(words[2:]))

    def end(self, words: list[str], _options: dict[str, str]) -> Decision[Any]:
        """end ID 7.2 commit|abort"""
        return self.machine.decide_end(
            words[0], _identity(words[1]), commit=words[2] == "commit", now_ms=self.now_ms
        )

    def marked(self, words: list[str], _options: dict[str, str]) -> Decision[Any]:
        """marked ID 7.3 PLACE…: these have the marker of 7.3"""
        answer = Marked(_identity(words[1]), _places(words[2:]))
        return self.machine.decide_marked(words[0], [answer], self.now_ms)

    def open(self, words: list[str], options: dict[str, str]) -> Decision[Any]:
        """open NAME SEQUENCE ATTEMPT WRITER"""
        name, sequence, attempt, writer = words
        timeout_ms = int(options.get("timeout", 1000))
        request = Open(name, int(sequence), attempt, writer, timeout_ms)
        return self.machine.decide_open_shared(request, self.now_ms)

    def prepare(self, words: list[str], _options: dict[str, str]) -> Decision[Any]:
        return self.machine.decide_prepare_writer(words[0], _identity(words[1]), self.now_ms)

    def end_shared(self, words: list[str], options: dict[str, str]) -> Decision[Any]:
        """end-shared NAME SEQUENCE ATTEMPT|- commit|abort [writers=1,2]"""
        name, sequence, attempt, word = words
        counted = tuple(int(number) for number in options.get("writers", "").split(",") if number)
        attempt = "" if attempt == "-" else attempt
        request = EndShared(name, int(sequence), attempt, word == "commit", counted)
        return self.machine.decide_end_shared(request, self.now_ms)

    # -- partitions -------------------------------------------------------------------------------

    def produce(self, words: list[str], options: dict[str, str]) -> str:
        """produce PARTITION 7.2 SEQUENCE [id=ID]: with an id, the broker asks before it opens"""
        name, identity = words[0], _identity(words[1])
        producer = (identity.producer_id, identity.producer_epoch, int(words[2]))
        data = batch(producer=producer, transactional=True)
        state = self.states.setdefault(name, LogState(Offset(0)))
        header = read_header(data)
        if "id" in options and opens_transaction(state.producers.get(header.producer_id), header):
            self.machine.decide_verify(options["id"], identity, _places([name]))
        verdict = state.producers.check(header)
        if isinstance(verdict, Duplicate):
            return f"duplicate of {verdict.base_offset}"
        return f"at {self.append(name, data)}"

    def marker(self, words: list[str], _options: dict[str, str]) -> str:
        """marker PARTITION 7.3 commit|abort"""
        name, identity, word = words
        kind = ControlType.COMMIT if word == "commit" else ControlType.ABORT
        data = bytes(encode_marker(Marker(kind, 0), _identity(identity), 0))
        state = self.states.setdefault(name, LogState(Offset(0)))
        verdict = state.producers.check_marker(read_header(data))
        if isinstance(verdict, Duplicate):
            return f"duplicate of {verdict.base_offset}"
        return f"at {self.append(name, data)}"

    def append(self, name: str, data: bytes) -> int:
        log, state = self.logs.setdefault(name, []), self.states[name]
        header = read_header(data)._replace(base_offset=state.end, leader_epoch=0)
        kind = decode_marker(data).kind if header.is_control else None
        state.apply(header, kind, self.now_ms)
        log.append(header.base_offset.to_bytes(8, "big") + data[8:])
        return header.base_offset

    def read(self, words: list[str], options: dict[str, str]) -> str:
        """read PARTITION [committed=N]: what read_committed shows below a high watermark of N"""
        log, state = self.logs[words[0]], self.states[words[0]]
        high_watermark = Offset(int(options.get("committed", len(log))))
        stable = state.producers.last_stable_offset(high_watermark)
        aborted = state.aborted.overlapping(Offset(0), stable)
        seen = [n for n in range(stable) if visible_batches(log[n], aborted)]
        return f"stable to {stable} of {len(log)}, sees {seen}"

    def record(self, record: TxnRecord) -> str:
        if isinstance(record, TxnForgotten):
            return f"{record.transactional_id}: forgotten"
        return _txn(record.txn)


# -- words ----------------------------------------------------------------------------------------


def _identity(word: str) -> ProducerIdentity:
    producer_id, epoch = word.split(".")
    return ProducerIdentity(ProducerId(int(producer_id)), ProducerEpoch(int(epoch)))


def _places(words: list[str]) -> Places:
    partitions = tuple(
        TopicPartition(word.rsplit("-", 1)[0], int(word.rsplit("-", 1)[1]))
        for word in words
        if not word.startswith("group:")
    )
    groups = tuple(word.removeprefix("group:") for word in words if word.startswith("group:"))
    return Places(partitions, groups)


def _id(identity: ProducerIdentity) -> str:
    return f"{identity.producer_id}.{identity.producer_epoch}"


def _txn(txn: Txn) -> str:
    text = f"{txn.transactional_id}: {txn.state}"
    if txn.is_shared:
        token = "" if txn.token is None else f" {txn.token.sequence} by {txn.token.attempt}"
        text += f"{token}, committed {txn.committed_sequence}"
    else:
        text += f" {_id(txn.identity)}"
        if txn.holder != txn.identity:
            text += " held by nobody" if txn.holder == NOBODY else f" held as {_id(txn.holder)}"
    for writer in txn.writers:
        places = ",".join((*map(str, writer.partitions), *writer.groups)) or "nowhere"
        done = " done" if writer.prepared else ""
        name = f"{writer.name} " if writer.name else ""
        text += f" [{name}{_id(writer.identity)} in {places}{done}]"
    return text


def _markers(effect: SendMarkers) -> list[str]:
    lines = []
    for writer in effect.writers:
        places = ",".join((*map(str, writer.places.partitions), *writer.places.groups))
        word = "commit" if writer.commit else "abort"
        lines.append(f"{word} {_id(writer.marker)} to {places}")
    return lines


def _reply(reply: Any) -> str:
    match reply:
        case ProducerIdentity():
            return _id(reply)
        case Completing():
            return "ask again"
        case Joined(_, identity):
            return _id(identity)
        case SharedEnd(already):
            return "already committed" if already else "done"
        case None:
            return "ok"
        case _:
            return str(reply)
