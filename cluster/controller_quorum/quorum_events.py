"""What a controller tells its event log: every record that the quorum has agreed on, in order."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from suiro.model.codec import decode

from cluster.controller_quorum.entry_codec import unpack
from cluster.controller_quorum.messages import EntryKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cluster.controller_quorum.messages import Entry
    from cluster.host.events import Events


def tell_committed(events: Events, entries: Sequence[Entry]) -> None:
    """Leaders, ISRs and epochs (PartitionChanged), fencing (NodeFenced), and all the rest."""
    for entry in entries:
        for encoded in unpack(entry.data) if entry.kind is EntryKind.NORMAL else ():
            record = decode(encoded)
            events.emit(
                "committed",
                index=entry.index,
                term=entry.term,
                record=type(record).__name__,
                facts=asdict(record),
            )
