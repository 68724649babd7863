"""Which packets of a capture are replayed by whom: the records that the agent `apps.emulation.replayer` sends by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from apps.emulation.plan import ExperimentPlan, stream_numbers
from apps.emulation.receiver import SEQUENCE_LIMIT
from apps.emulation.replayer import LARGEST_FRAME_BYTES, RECORD, smallest_frame_bytes
from apps.emulation.traffic import family_of
from controller.captures.capture_file import CapturedFrame
from controller.captures.figures import packet_of
from controller.wire.addresses import format_ip
from controller.wire.packets import Data

_TAG_BYTES = 4
_SHORTEST_NS = 100_000_000


class ReplayImpossible(ValueError):  # noqa: N818 - it names what is the case
    """Nothing can be replayed; the text says why, and what to do."""


@dataclass(slots=True)
class ReplayPlan:
    """Packets that are replayed.

    Attributes
    ----------
    capture
        The capture that they are of.
    records
        The file of their records.
    speed
        How many times faster than they were captured.
    sent
        Packets by group.
    sizes_bytes
        Bytes of whole Ethernet frames by group.
    skipped
        Frames that are not replayed, by why: ``other`` (no data of a group), ``group`` (not in the scenario) and
        ``sender`` (nobody of the scenario sends for it to that group).
    enlarged, shortened
        Packets that are sent larger than they were, to have room for what counts them, and smaller, to fit a cable.
    backward
        Packets with a time before that in front of them, at which they are sent.
    last_ns
        When the last is sent, from the first, as captured.
    """

    capture: Path
    records: Path
    speed: float
    sent: Counter[str] = field(default_factory=Counter)
    sizes_bytes: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    enlarged: int = 0
    shortened: int = 0
    backward: int = 0
    last_ns: int = 0

    @property
    def duration_s(self) -> float:
        """How long it takes, a moment for the last packet included."""
        return (self.last_ns / self.speed + _SHORTEST_NS) / 1e9


def plan_replay(
    capture: Path, frames: Iterable[CapturedFrame], plan: ExperimentPlan, records: Path, speed: float
) -> ReplayPlan:
    """Write the records of a capture's frames that senders of `plan` stand for; ReplayImpossible where none is.

    OSError where `records` cannot be written.
    """
    replay = ReplayPlan(capture, records, speed)
    numbers = stream_numbers(plan)
    groups = {group.group for group in plan.groups}
    of_stream: Counter[int] = Counter()
    first_ns: int | None = None
    with records.open("wb") as file:
        for frame in frames:
            packet, _ = packet_of(frame.data)
            if not isinstance(packet, Data):
                replay.skipped["other"] += 1
                continue
            group = format_ip(packet.group)
            if group not in groups:
                replay.skipped["group"] += 1
                continue
            host = plan.addresses.get(format_ip(packet.source))
            number = numbers.get((group, host)) if host is not None else None
            if number is None:
                replay.skipped["sender"] += 1
                continue
            if first_ns is None:
                first_ns = frame.at_ns
            at_ns = frame.at_ns - first_ns
            if at_ns < replay.last_ns:
                replay.backward += 1
                at_ns = replay.last_ns
            replay.last_ns = at_ns
            size_bytes = _size(replay, frame, group)
            file.write(RECORD.pack(at_ns, number, size_bytes))
            replay.sent[group] += 1
            replay.sizes_bytes[group] += size_bytes
            of_stream[number] += 1
    if not replay.sent:
        raise ReplayImpossible(_why_nothing(replay, plan))
    if max(of_stream.values()) > SEQUENCE_LIMIT:
        raise ReplayImpossible(f"more than {SEQUENCE_LIMIT:,} packets of one sender to a group, which nobody counts")
    return replay


def _size(replay: ReplayPlan, frame: CapturedFrame, group: str) -> int:
    """Return the size of a frame as it is sent: without tags, and within bounds."""
    size_bytes = frame.wire_bytes
    for at in (12, 16):
        if frame.data[at : at + 2] not in (b"\x81\x00", b"\x88\xa8"):
            break
        size_bytes -= _TAG_BYTES
    smallest = smallest_frame_bytes(family_of(group))
    if size_bytes < smallest:
        replay.enlarged += 1
        return smallest
    if size_bytes > LARGEST_FRAME_BYTES:
        replay.shortened += 1
        return LARGEST_FRAME_BYTES
    return size_bytes


def _why_nothing(replay: ReplayPlan, plan: ExperimentPlan) -> str:
    if not plan.addresses:
        return (
            "the scenario's `addresses` say for nobody of the capture who plays it: `vsrt trace scenario` makes one"
        )
    return (
        "nothing of it is of a group and a sender of the scenario: "
        f"{replay.skipped['group']:,} packets are of other groups, {replay.skipped['sender']:,} of other senders, "
        f"{replay.skipped['other']:,} frames are neither"
    )
