"""`vsrt trace`: captures are inspected, and become scenarios that `vsrt emulate` takes."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from apps.cli.main import main
from apps.emulation.plan import EventPlan, ReceiverPlan
from apps.emulation.scenario import load_scenario
from capture_files import data, pcap, report
from controller.wire.packets import RecordType
from topology.files import parse
from topology.generators import make

JOIN, LEAVE = RecordType.CHANGE_TO_EXCLUDE, RecordType.CHANGE_TO_INCLUDE
STATE, ALLOW = RecordType.MODE_IS_EXCLUDE, RecordType.ALLOW_NEW_SOURCES


def at(seconds: float) -> int:
    return round((1_700_000_000 + seconds) * 1_000_000_000)


FRAMES = [
    (at(0), report(STATE, "239.1.1.1", 7)),
    (at(0.1), report(ALLOW, "232.1.1.1", 8, ["10.0.0.2"])),
    *((at(1 + number / 100), data("239.1.1.1", 1)) for number in range(200)),
    (at(2.5), report(JOIN, "239.1.1.1", 9)),
    (at(2.75), report(LEAVE, "239.1.1.1", 7)),
    (at(2.9), data("232.1.1.1", 2)),
    (at(3), data("232.1.1.1", 2)),
    (at(3), data("224.0.0.251", 3)),
    (at(3), data("239.8.8.8", 3)),
]


@pytest.fixture
def feed(tmp_path: Path) -> Path:
    path = tmp_path / "feed.pcap"
    path.write_bytes(pcap(FRAMES))
    return path


def inspected(path: Path, capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> Any:
    assert main(["trace", "inspect", str(path), "--json", *arguments]) == status
    return json.loads(capsys.readouterr().out)


def test_a_capture_is_inspected(feed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = inspected(feed, capsys)
    groups = {each["group"]: each for each in told["groups"]}
    assert groups.keys() == {"239.1.1.1", "232.1.1.1", "224.0.0.251", "239.8.8.8"}
    assert groups["239.1.1.1"]["rate_pps"] == pytest.approx(100)
    assert (groups["239.1.1.1"]["hosts"], groups["239.1.1.1"]["joins"], groups["239.1.1.1"]["leaves"]) == (2, 1, 1)
    assert told["damage"] is None
    assert main(["trace", "inspect", str(feed), "--groups", "1"]) == 0
    told = capsys.readouterr().out
    assert "208 frames of 3.000 s from 2023-11-14 22:13:20 UTC: 4 reports, 0 queries" in told
    assert "239.1.1.1" in told
    assert "3 groups are left out" in told


def test_tcpdump_counts_the_same(feed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = subprocess.run(
        ["tcpdump", "-nr", feed, "udp and dst 239.1.1.1"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    (group,) = (each for each in inspected(feed, capsys)["groups"] if each["group"] == "239.1.1.1")
    assert group["frames"] == len(lines) == 200


def test_gzip_is_unpacked_and_what_is_cut_tells_both_places(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "feed.pcap.gz"
    path.write_bytes(gzip.compress(pcap(FRAMES)))
    assert inspected(path, capsys)["frames"] == len(FRAMES)
    path.write_bytes(path.read_bytes()[:-60])
    told = inspected(path, capsys, status=1)
    assert "compressed by gzip, is cut" in told["damage"]["reason"]
    assert told["damage"]["frame"] == told["frames"] + 1
    path.write_bytes(gzip.compress(pcap(FRAMES))[:30] + b"\xff" * 80)
    assert "compressed by gzip, is damaged" in inspected(path, capsys, status=1)["damage"]["reason"]


def test_a_cut_capture_is_told_up_to_the_place(feed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = feed.read_bytes()
    feed.write_bytes(content[:-5])
    assert main(["trace", "inspect", str(feed)]) == 1
    told = capsys.readouterr()
    start = len(content) - len(FRAMES[-1][1])
    assert f"{len(FRAMES) - 1} frames of" in told.out
    assert f"{feed}: byte {start:,}, frame {len(FRAMES)}: the file is cut: 142 bytes of a frame" in told.err
    assert main(["trace", "scenario", str(feed)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert f"{feed}: byte {start:,}, frame {len(FRAMES)}: the file is cut" in told.err


@pytest.mark.parametrize("command", ["inspect", "scenario"])
def test_what_is_no_capture_is_bad_input(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "notes.txt"
    assert main(["trace", command, str(path)]) == 2
    assert f"{path}: No such file or directory" in capsys.readouterr().err
    path.write_text("no packets")
    assert main(["trace", command, str(path)]) == 2
    assert f"{path}: no capture, neither pcap nor pcapng" in capsys.readouterr().err
    path.write_bytes(b"")
    assert main(["trace", command, str(path)]) == 2
    assert f"{path}: the file is empty" in capsys.readouterr().err
    path.write_bytes(b"\xd4\xc3")
    assert main(["trace", command, str(path)]) == 2
    assert f"{path}: the file is cut: 4 bytes of its beginning wanted, 2 there" in capsys.readouterr().err


def test_plots_are_written(feed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = inspected(feed, capsys, "--plot", str(tmp_path / "plots"))
    assert {Path(path).name for path in told["plots"]} == {
        f"{name}.{kind}" for name in ("rates", "gaps", "sizes") for kind in ("png", "svg")
    }
    assert all(Path(path).stat().st_size > 1000 for path in told["plots"])
    assert "239.1.1.1" in (tmp_path / "plots" / "rates.svg").read_text()


def test_a_scenario_has_the_capture_s_hosts_rates_joins_and_leaves(
    feed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "feed.yaml"
    assert main(["trace", "scenario", str(feed), "-o", str(output), "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["output"] == str(output)
    assert "1 groups for which nobody asks are left out" in told.err
    plan = load_scenario(output, make, lambda path: parse(path.read_bytes(), str(path)).graph)
    hosts = {address.rpartition(".")[2]: host for address, host in plan.addresses.items()}
    assert hosts.keys() == {"1", "2", "7", "8", "9"}
    assert len(set(hosts.values())) == 5
    first, second = plan.groups
    assert (first.group, first.receivers) == ("239.1.1.1", (ReceiverPlan(hosts["7"]),))
    (sender,) = first.senders
    assert (sender.host, sender.rate_bps) == (hosts["1"], pytest.approx(142 * 800, rel=0.001))
    assert (second.group, second.receivers) == ("232.1.1.1", (ReceiverPlan(hosts["8"], include=(hosts["2"],)),))
    assert plan.duration_s == pytest.approx(2.1)
    assert plan.events == (
        EventPlan(1.5, "join", (hosts["9"],), "239.1.1.1"),
        EventPlan(1.75, "leave", (hosts["7"],), "239.1.1.1"),
    )


def test_the_same_seed_draws_the_same_hosts(feed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for seed in ("1", "1", "2"):
        assert main(["trace", "scenario", str(feed), "--seed", seed]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] != texts[2]


def test_groups_for_which_nobody_asks_get_receivers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "feed.pcap"
    path.write_bytes(pcap([(at(number), data("239.1.1.1")) for number in range(3)]))
    assert main(["trace", "scenario", str(path)]) == 2
    assert (
        "nobody asks for one of its groups: `vsrt trace scenario --receivers N` gives each N"
        in capsys.readouterr().err
    )
    assert main(["trace", "scenario", str(path), "--receivers", "3", "--json"]) == 0
    (group,) = json.loads(capsys.readouterr().out)["scenario"]["groups"]
    assert len({*group["receivers"], group["senders"][0]["host"]}) == 4


def test_a_scenario_that_cannot_be_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, fabric = tmp_path / "feed.pcap", tmp_path / "fabric.json"
    path.write_bytes(pcap([(at(0), data("224.0.0.251"))]))
    assert main(["trace", "scenario", str(path)]) == 2
    assert "nobody sends to a group in it that leaves a link" in capsys.readouterr().err
    path.write_bytes(pcap([(at(0), data("239.1.1.1")), (at(4000), data("239.1.1.1"))]))
    assert main(["trace", "scenario", str(path), "--receivers", "1"]) == 2
    assert "sent to for 4,000 s, and a scenario lasts 3600 at most" in capsys.readouterr().err
    assert main(["topology", "make", "avalanche24", "-o", str(fabric)]) == 0
    path.write_bytes(pcap([(at(0), data("239.1.1.1", number)) for number in range(1, 31)]))
    assert main(["trace", "scenario", str(path), "--receivers", "1", "--topology", str(fabric)]) == 2
    assert "it takes 31 hosts, and the fabric has 24" in capsys.readouterr().err
