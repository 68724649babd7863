"""Which packets of a capture are replayed by whom, and that they leave at their times."""

from __future__ import annotations

import select
import socket
import time
from pathlib import Path

import pytest

from apps.emulation import replayer, traffic
from apps.emulation.plan import ExperimentPlan, GroupPlan, ReceiverPlan, SenderPlan
from apps.emulation.replay import ReplayImpossible, ReplayPlan, plan_replay
from apps.emulation.replayer import LARGEST_FRAME_BYTES, RECORD, Replayer
from capture_files import data, report
from controller.captures.capture_file import CapturedFrame
from controller.wire.packets import RecordType
from topology.generators import make

MS_NS = 1_000_000
PLAN = ExperimentPlan(
    make("fattree", {"k": 4}),
    (
        GroupPlan("239.1.1.1", (SenderPlan("h1", 1e6), SenderPlan("h2", 1e6)), (ReceiverPlan("h5"),)),
        GroupPlan("ff1e::7", (SenderPlan("h2", 1e6),), (ReceiverPlan("h5"),)),
    ),
    addresses={"10.0.0.1": "h1", "10.0.0.2": "h2", "fd00::2": "h2", "10.0.0.5": "h5"},
)


def planned(folder: Path, *frames: tuple[float, bytes], speed: float = 1.0) -> ReplayPlan:
    captured = [
        CapturedFrame(number, round(at_ms * MS_NS), frame, len(frame))
        for number, (at_ms, frame) in enumerate(frames, 1)
    ]
    return plan_replay(Path("feed.pcap"), captured, PLAN, folder / "records", speed)


def records(folder: Path) -> list[tuple[int, ...]]:
    return list(RECORD.iter_unpack((folder / "records").read_bytes()))


def test_packets_of_senders_of_the_scenario_are_replayed_and_others_are_counted(tmp_path: Path) -> None:
    replay = planned(
        tmp_path,
        (5, report(RecordType.CHANGE_TO_EXCLUDE, "239.1.1.1", 5)),
        (10, data("239.1.1.1", 1)),
        (11, data("239.1.1.1", 2, 500)),
        (12, data("239.9.9.9", 1)),
        (13, data("239.1.1.1", 5)),
        (13, data("239.1.1.1", 77)),
        (20, data("ff1e::7", 2)),
        speed=2.0,
    )
    assert records(tmp_path) == [(0, 1, 142), (1 * MS_NS, 2, 542), (10 * MS_NS, 3, 162)]
    assert replay.sent == {"239.1.1.1": 2, "ff1e::7": 1}
    assert replay.sizes_bytes == {"239.1.1.1": 684, "ff1e::7": 162}
    assert replay.skipped == {"other": 1, "group": 1, "sender": 2}
    assert replay.duration_s == pytest.approx(0.105)


def test_sizes_are_those_of_untagged_frames_within_bounds_and_times_never_go_back(tmp_path: Path) -> None:
    frame = data("239.1.1.1", 1)
    replay = planned(
        tmp_path,
        (10, frame[:12] + b"\x81\x00\x00\x0a" + frame[12:]),
        (9, data("ff1e::7", 2, 1)),
        (12, data("239.1.1.1", 1, 3000)),
        (12, data("239.1.1.1", 1, 18)),
    )
    assert records(tmp_path) == [
        (0, 1, 142),
        (0, 3, 78),
        (2 * MS_NS, 1, LARGEST_FRAME_BYTES),
        (2 * MS_NS, 1, 60),
    ]
    assert (replay.enlarged, replay.shortened, replay.backward) == (1, 1, 1)


def test_a_capture_of_others_is_told(tmp_path: Path) -> None:
    with pytest.raises(ReplayImpossible, match=r"1 packets are of other groups, 1 of other senders, 0 frames"):
        planned(tmp_path, (1, data("239.9.9.9", 1)), (2, data("239.1.1.1", 99)))


@pytest.fixture
def heard() -> socket.socket:
    """Return a socket that receives on this machine's loopback what is sent to it."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("127.0.0.1", 0))
    sock.settimeout(5)
    return sock


def test_packets_leave_at_their_times_and_of_their_sizes(
    tmp_path: Path, heard: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    def to_loopback(_request: object) -> socket.socket:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.connect(heard.getsockname())
        return sock

    monkeypatch.setattr(traffic, "open_sender", to_loopback)
    monkeypatch.setattr(replayer, "RECORDS_READ", 3)
    at_ms = [0, 0, 10, 30, 31, 60, 60, 100]
    file = tmp_path / "records"
    file.write_bytes(b"".join(RECORD.pack(each * MS_NS, 4, 100 + number) for number, each in enumerate(at_ms)))
    agent = Replayer()
    agent.handle({"do": "open", "stream": 4, "group": "239.1.1.1"})
    begin_ns = agent.handle({"do": "replay", "file": str(file), "speed": 2.0, "phase": 7})["at_ns"]
    while (wait_s := agent.step()) < replayer.IDLE_S:
        select.select([], [], [], wait_s)
    assert time.monotonic_ns() - begin_ns >= 50 * MS_NS
    for number in range(len(at_ms)):
        payload = heard.recv(4096)
        assert traffic.HEADER.unpack_from(payload) == (traffic.MAGIC, 4, 7, 0, number)
        assert len(payload) + 42 == 100 + number
    told = agent.handle({"do": "report"})
    assert (told["streams"]["4"]["sent"], told["streams"]["4"]["bytes"]) == (8, 828)
    assert told["streams"]["4"]["last_ns"] - told["streams"]["4"]["first_ns"] >= 50 * MS_NS - replayer.LATE_NS
    assert sum(count for _, count in told["gap_errors"]) == 7


def test_who_is_held_up_goes_on_from_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1_000 * MS_NS]
    monkeypatch.setattr(replayer.time, "monotonic_ns", lambda: clock[0])
    monkeypatch.setattr(traffic, "open_sender", lambda _request: _Nowhere())
    file = tmp_path / "records"
    file.write_bytes(b"".join(RECORD.pack(at_ms * MS_NS, 1, 100) for at_ms in (0, 1, 2, 3)))
    agent = Replayer()
    agent.handle({"do": "open", "stream": 1, "group": "239.1.1.1"})
    agent.handle({"do": "replay", "file": str(file), "speed": 1.0, "phase": 1})
    assert agent.step() == pytest.approx(0.001)
    clock[0] += 51 * MS_NS
    assert agent.step() == pytest.approx(0.001)
    told = agent.handle({"do": "report"})
    assert told["streams"]["1"]["sent"] == 2
    assert told["held_up_ms"] == told["max_lateness_ms"] == 50.0
    assert told["gap_error"]["max_ms"] == 50.0


class _Nowhere:
    def sendmsg(self, parts: tuple[bytes, ...]) -> int:
        return sum(map(len, parts))
