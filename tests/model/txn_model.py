"""A small exhaustive model of transactions: every order of events, breadth first.

    python -m tests.model.txn_model --states 1200000

One transactional id, two producers that take it from one another, two partitions, a coordinator.
The machine, the client's core, the producer states and the aborted index are the real ones; only
what connects them is modelled. A message that was ever sent stays in the network for good, so it
may arrive late, twice, or never; a broker's answer from the coordinator may be as old as it likes;
a coordinator that is replaced sends its markers again, which is the same. A leader of a partition
may lose what is not committed at any moment.

Checked in every state: a decision never changes (T4), the visible is the committed (T1, T2, T3),
what a producer was told is what happened (T5), no identity belongs to two (I1), and an open
transaction in a partition is known to the coordinator (T6).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, deque
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from suiro.model.error_base import SuiroError
from suiro.model.errors import ProducerFenced
from suiro.model.ids import Offset, ProducerIdentity, TopicPartition
from suiro.transaction import EndTxn, InitProducer, Register, State, Transaction

from cluster.broker.txn_verify import opens_transaction
from cluster.log.producers import NO_OFFSET, Duplicate
from cluster.txncoord.machine import TxnMachine
from cluster.txncoord.producer_ids import ProducerIds
from cluster.txncoord.requests import Completing, Init, Marked, Places
from cluster.txncoord.table import TxnLimits
from cluster.txncoord.txn import DECIDED, NOBODY, Txn, TxnState
from tests.model.txn_states import (
    CACHED,
    ID,
    PARTITIONS,
    Bounds,
    Broken,
    Client,
    Entry,
    Message,
    World,
    freeze,
    header,
    outlook_of,
    replayed,
    thaw,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.host.machine import Decision

TIMEOUT_MS = 10
NEVER_MS, LATER_MS = 0, 1_000


class Verify(NamedTuple):
    """A broker asks the coordinator."""

    identity: ProducerIdentity
    partition: TopicPartition


EXPIRE = "expire"

Question = Init | Register | EndTxn | Verify | Marked | str


class Decided(NamedTuple):
    """What the machine made of a question: its state afterwards, and the answer."""

    txn: Txn | None
    next_id: int
    ended: tuple[ProducerIdentity, bool] | None
    reply: Any


class Model:
    """The successors of a state, and the invariants."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.machine = TxnMachine(TxnLimits(epoch_max=bounds.epoch_max))
        self._known: dict[Txn | None, Txn | None] = {}
        self._decisions: dict[tuple[int, int, Question], Decided] = {}
        self._markers: dict[int, frozenset[Message]] = {}

    def start(self) -> World:
        client = Client(freeze(Transaction(ID)), 0, frozenset(), (), ())
        return World(None, 1, 0, frozenset(), (client, client), ((), ()), (0, 0), frozenset())

    def successors(self, world: World) -> Iterator[World]:
        """What can happen next. Whatever may be sent is sent at once: it need not arrive."""
        for after in self._moves(world):
            yield self._verified(self._all_sent(after))

    def _all_sent(self, world: World) -> World:
        """With every message under way that may be, and every batch acknowledged that can be."""
        more: set[Message] = set()
        clients = world.clients
        for number, client in enumerate(world.clients):
            outlook = outlook_of(client)
            more |= outlook.sends
            acked = {p for p in outlook.writable if _is_committed(world, p, client.core[1])}
            if not acked <= client.acked:
                clients = _put(clients, number, client._replace(acked=client.acked | acked))
        if world.txn is not None and world.txn.state in DECIDED:
            more |= self._markers_of(world.txn)
        messages = world.messages if more <= world.messages else world.messages | more
        return world._replace(clients=clients, messages=messages)

    def _markers_of(self, txn: Txn) -> frozenset[Message]:
        known = self._markers.get(id(txn))
        if known is None:
            known = self._markers[id(txn)] = frozenset(
                ("marker", writer.marker, writer.commits, partition)
                for writer in txn.writers
                for partition in writer.partitions
            )
        return known

    def _verified(self, world: World) -> World:
        """Every broker that would hear a yes by now has heard it: it may be acted on later."""
        if world.txn is None or world.txn.state is not TxnState.ONGOING:
            return world
        for message in tuple(world.messages):
            if not isinstance(message, tuple) or message[0] != "produce":
                continue
            answer = ("verified", *message[1:])
            if answer in world.messages:
                continue
            _, identity, partition = message
            _, reply = self._decided(world, Verify(identity, partition))
            if not isinstance(reply, SuiroError):
                world = world._replace(messages=world.messages | {answer})
        return world

    def _moves(self, world: World) -> Iterator[World]:
        for number, client in enumerate(world.clients):
            yield from self._client_moves(world, number, client)
        for message in world.messages:
            yield from self._delivered(world, message)
        yield from self._coordinator_moves(world)
        for at, log in enumerate(world.logs):
            if world.committed[at] < len(log):
                yield world._replace(committed=_put(world.committed, at, len(log)))
                yield world._replace(logs=_put(world.logs, at, log[: world.committed[at]]))

    # -- producers --------------------------------------------------------------------------------

    def _client_moves(self, world: World, number: int, client: Client) -> Iterator[World]:
        step = outlook_of(client).step
        if isinstance(step, InitProducer):
            if world.inits < self.bounds.inits:
                yield from self._init(world, number, step)
            return
        for after in choices_of(client, self.bounds.begun):
            yield _with(world, number, after)

    def _init(self, world: World, number: int, step: InitProducer) -> Iterator[World]:
        world = world._replace(inits=world.inits + 1)
        request = Init(ID, TIMEOUT_MS, f"client {number}", step.go_on)
        after, reply = self._decided(world, request)
        yield after
        if not isinstance(reply, Completing):
            yield _answered(after, number, step, reply)

    # -- the network ------------------------------------------------------------------------------

    def _delivered(self, world: World, message: Message) -> Iterator[World]:
        match message:
            case Register() | EndTxn():
                yield from self._step_delivered(world, message)
            case ("produce", identity, partition):
                yield from self._produce_delivered(world, identity, partition)
            case ("verified", identity, partition):
                yield from self._append(world, identity, partition)
            case ("marker", identity, commit, partition):
                at = PARTITIONS.index(partition)
                state = replayed(world.logs[at])
                entry = header(identity, 0, control=True)
                try:
                    verdict = state.producers.check_marker(entry)
                except ProducerFenced:
                    return
                if not isinstance(verdict, Duplicate):
                    yield _appended(world, at, Entry(identity, commit))
            case _:
                raise AssertionError(message)

    def _step_delivered(self, world: World, step: Register | EndTxn) -> Iterator[World]:
        after, reply = self._decided(world, step)
        if after != world:
            yield after
        for number, client in enumerate(world.clients):
            if outlook_of(client).step == step:
                yield _answered(after, number, step, reply)

    def _produce_delivered(
        self, world: World, identity: ProducerIdentity, partition: TopicPartition
    ) -> Iterator[World]:
        producers = replayed(world.logs[PARTITIONS.index(partition)]).producers
        entry = header(identity, 0, control=False)
        if not opens_transaction(producers.get(identity.producer_id), entry):
            yield from self._append(world, identity, partition)
            return
        _, reply = self._decided(world, Verify(identity, partition))
        if isinstance(reply, SuiroError):
            yield from _refused(world, identity, reply)

    def _append(
        self, world: World, identity: ProducerIdentity, partition: TopicPartition
    ) -> Iterator[World]:
        at = PARTITIONS.index(partition)
        try:
            verdict = replayed(world.logs[at]).producers.check(header(identity, 0, control=False))
        except SuiroError as error:
            yield from _refused(world, identity, error)
            return
        if not isinstance(verdict, Duplicate):
            yield _appended(world, at, Entry(identity, None))

    # -- the coordinator --------------------------------------------------------------------------

    def _coordinator_moves(self, world: World) -> Iterator[World]:
        txn = world.txn
        if txn is None:
            return
        if txn.state is TxnState.ONGOING:
            yield self._decided(world, EXPIRE)[0]
        if txn.state not in DECIDED:
            return
        for at, log in enumerate(world.logs):
            for entry in log[: world.committed[at]]:
                if entry.marker is not None:
                    answer = Marked(entry.identity, Places((PARTITIONS[at],)))
                    yield self._decided(world, answer)[0]

    def _decided(self, world: World, question: Question) -> tuple[World, Any]:
        """What the machine makes of a question in this state; an error is an answer too."""
        key = (id(world.txn), world.next_id, question)  # equal ones are one object
        known = self._decisions.get(key)
        if known is None:
            known = self._decisions[key] = self._decide(world.txn, world.next_id, question)
        if known.txn is world.txn:
            return world, known.reply
        decided = world.decided if known.ended is None else world.decided | {known.ended}
        after = world._replace(txn=known.txn, next_id=known.next_id, decided=decided)
        return after, known.reply

    def _decide(self, txn: Txn | None, next_id: int, question: Question) -> Decided:
        """Let the real machine decide and apply."""
        machine = self.machine
        machine.table.txns = {} if txn is None else {ID: txn}
        machine.table.ids = ProducerIds()
        machine.on_producer_ids(next_id, 1_000_000)  # type: ignore[arg-type]
        try:
            decision = _ask(machine, question)
        except SuiroError as error:
            return Decided(txn, next_id, None, error)
        if not decision.records:
            return Decided(txn, next_id, None, decision.reply)
        for record in decision.records:
            machine.apply(record)
        after = machine.get(ID)
        assert after is not None
        last = after.ended
        is_new = last is not None and (txn is None or txn.ended != last)
        ended = (last.identity, last.commit) if last is not None and is_new else None
        same = self._known.setdefault(after, after)
        return Decided(same, int(machine.table.ids.peek()), ended, decision.reply)

    # -- invariants -------------------------------------------------------------------------------

    def check(self, world: World) -> None:
        decided = dict(world.decided)
        if len(decided) != len(world.decided):
            raise Broken(f"T4: decided both ways: {sorted(map(str, world.decided))}")
        for log, committed in zip(world.logs, world.committed, strict=True):
            _check_visible(log, committed, world.decided)
            _check_open(world.txn, log)
        for client in world.clients:
            for identity, commit in client.told:
                if decided.get(identity, False) != commit:
                    raise Broken(f"T5: {identity} was told {commit}, it is {decided}")
        first, second = (client.core[1] for client in world.clients)
        if first == second != NOBODY:
            raise Broken(f"I1: {first} belongs to both")


@lru_cache(CACHED)
def _check_visible(
    log: tuple[Entry, ...], committed: int, outcomes: frozenset[tuple[ProducerIdentity, bool]]
) -> None:
    decided = dict(outcomes)
    state = replayed(log)
    stable = state.producers.last_stable_offset(Offset(committed))
    aborted = state.aborted.overlapping(Offset(0), stable)
    for offset, (identity, marker) in enumerate(log[:stable]):
        if marker is not None:
            continue
        ended = [
            entry.marker
            for entry in log[offset:committed]
            if entry.marker is not None and entry.identity.producer_id == identity.producer_id
        ]
        if not ended:
            raise Broken(f"T3: {identity} at {offset} is stable without a committed marker")
        hidden = any(
            gone.producer_id == identity.producer_id and gone.first <= offset <= gone.last
            for gone in aborted
        )
        if hidden == decided.get(identity, hidden is False):
            raise Broken(f"T1, T2: {identity} hidden={hidden}, decided {decided}")


def _check_open(txn: Txn | None, log: tuple[Entry, ...]) -> None:
    """What is open in a partition is open or owed a marker at the coordinator."""
    for state in replayed(log).producers.states():
        if state.open_from == NO_OFFSET:
            continue
        owed = [] if txn is None else [w.identity for w in txn.writers]
        if log[state.open_from].identity not in owed:
            raise Broken(f"T6: {log[state.open_from].identity} is open, the coordinator has {owed}")


# -- small moves ----------------------------------------------------------------------------------


def _ask(machine: TxnMachine, question: Question) -> Decision[Any]:
    match question:
        case Init():
            return machine.decide_init(question, NEVER_MS)
        case Register(identity, partitions, _):
            return machine.decide_add(ID, identity, Places(partitions), NEVER_MS)
        case EndTxn(identity, commit):
            return machine.decide_end(ID, identity, commit=commit, now_ms=NEVER_MS)
        case Verify(identity, partition):
            return machine.decide_verify(ID, identity, Places((partition,)))
        case Marked():
            return machine.decide_marked(ID, [question], NEVER_MS)
        case _:
            return machine.decide_expire(LATER_MS)


@lru_cache(CACHED)
def choices_of(client: Client, begun_max: int) -> list[Client]:
    """What the application may do next."""
    found = []
    core = thaw(client)
    if core.state is State.READY and client.begun < begun_max:
        core.begin()
        writes = PARTITIONS if client.begun == 0 else PARTITIONS[:1]
        core.write_to(writes)
        found.append(Client(freeze(core), client.begun + 1, frozenset(), client.told, writes))
    elif core.state in {State.OPEN, State.MUST_ABORT}:
        core.abort()
        found.append(client._replace(core=freeze(core)))
    if client.core[0] is State.OPEN and len(client.acked) == len(client.writes):
        core = thaw(client)
        core.commit()
        found.append(client._replace(core=freeze(core)))
    return found


def _put(items: tuple[Any, ...], at: int, item: Any) -> tuple[Any, ...]:
    return (*items[:at], item, *items[at + 1 :])


def _with(world: World, number: int, client: Client) -> World:
    return world._replace(clients=_put(world.clients, number, client))


def _is_committed(world: World, partition: TopicPartition, identity: ProducerIdentity) -> bool:
    at = PARTITIONS.index(partition)
    return Entry(identity, None) in world.logs[at][: world.committed[at]]


def _appended(world: World, at: int, entry: Entry) -> World:
    return world._replace(logs=_put(world.logs, at, (*world.logs[at], entry)))


def _answered(world: World, number: int, step: Any, reply: Any) -> World:
    """The answer reaches the producer that waits for it."""
    client = world.clients[number]
    core = thaw(client)
    told = client.told
    before = core.identity
    if isinstance(reply, SuiroError):
        core.on_error(reply)
    elif isinstance(step, InitProducer):
        if core.state is State.ABORTING:
            told = (*told, (before, False))
        core.on_initialised(reply)
    elif isinstance(step, Register):
        core.on_registered(step)
    else:
        told = (*told, (before, step.commit))
        core.on_ended(reply)
    return _with(world, number, client._replace(core=freeze(core), told=told))


def _refused(world: World, identity: ProducerIdentity, error: SuiroError) -> Iterator[World]:
    """A broker's refusal reaches the producer, if that is still at it."""
    for number, client in enumerate(world.clients):
        if client.core[0] is State.OPEN and client.core[1] == identity:
            core = thaw(client)
            core.on_refused(error)
            yield _with(world, number, client._replace(core=freeze(core)))


# -- the search -----------------------------------------------------------------------------------


class Searched(NamedTuple):
    """What a search came to."""

    states: int
    transitions: int
    depth: int
    is_complete: bool
    broken: str | None
    seen: Counter[str]


def search(bounds: Bounds, states_max: int) -> Searched:
    """Breadth first. A state is remembered by 64 bits: two of a million states that look alike are
    a chance of one in thirty million.
    """
    for cached in (replayed, header, outlook_of, choices_of, _check_visible):
        cached.cache_clear()  # of another search, with other code perhaps
    model = Model(bounds)
    start = model.start()
    visited = {start.key()}
    frontier = deque([(start, 0)])
    transitions = depth = 0
    seen: Counter[str] = Counter()
    while frontier and len(visited) < states_max:
        world, depth = frontier.popleft()
        if world.txn is not None:
            seen[world.txn.state] += 1
        try:
            for after in model.successors(world):
                transitions += 1
                key = after.key()
                if key not in visited:
                    model.check(after)
                    visited.add(key)
                    frontier.append((after, depth + 1))
        except AssertionError as error:
            return Searched(len(visited), transitions, depth, False, str(error), seen)
    return Searched(len(visited), transitions, depth, not frontier, None, seen)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=1_200_000)
    parser.add_argument("--inits", type=int, default=3)
    parser.add_argument("--begun", type=int, default=2)
    options = parser.parse_args()
    started = time.monotonic()
    found = search(Bounds(options.inits, options.begun), options.states)
    took = time.monotonic() - started
    ending = "all there are" if found.is_complete else f"the first, to depth {found.depth}"
    print(f"{found.states:,} states ({ending}), {found.transitions:,} transitions,", end=" ")
    print(f"{took:.0f} s: {found.broken or 'every invariant holds'}")
    for name, count in sorted(found.seen.items()):
        print(f"  {name:16} {count:,}")
    return found.broken is not None


if __name__ == "__main__":
    sys.exit(main())
