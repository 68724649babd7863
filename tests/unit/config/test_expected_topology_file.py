"""The expected fabric in a file of its own, as `vsrt topology make` writes it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from apps.cli.main import main
from apps.fabric_file import FabricFile
from controller.config.alarm_settings import ExpectedTopology
from controller.config.faults import PolicyInvalid
from controller.config.load import load_policy
from controller.config.terms import SwitchLink, SwitchPort


def link(a: int, a_port: int, b: int, b_port: int) -> SwitchLink:
    return SwitchLink(SwitchPort(a, a_port), SwitchPort(b, b_port))


def switch(name: str, dpid: int, kind: str = "switch") -> dict[str, Any]:
    return {"id": name, "kind": kind, "dpid": dpid}


def cable(a: str, b: str, *ports: int) -> dict[str, Any]:
    return {"source": a, "target": b, "ports": dict(zip((a, b), ports, strict=False))}


LEAVES = [switch("spine", 1), switch("leaf1", 2), switch("leaf2", 3), {"id": "h1", "kind": "host"}]
CABLES = [cable("spine", "leaf1", 1, 7), cable("leaf2", "spine", 7, 2), cable("h1", "leaf1", 0, 1)]


def write(path: Path, nodes: list[Any], links: list[Any]) -> Path:
    path.write_text(json.dumps({"nodes": nodes, "links": links}))
    return path


def read(directory: Path, topology: str) -> ExpectedTopology:
    policy = directory / "policy.yaml"
    policy.write_text(f"version: 1\ntopology:\n  {topology}\n")
    return load_policy(policy.read_bytes(), str(policy), FabricFile(policy).read).topology


def faults(directory: Path, topology: str) -> list[tuple[int, str, str]]:
    with pytest.raises(PolicyInvalid) as caught:
        read(directory, topology)
    return [tuple(error) for error in caught.value.errors]


def test_switches_and_the_links_between_them_are_expected_and_hosts_are_not(tmp_path: Path) -> None:
    write(tmp_path / "fabric.json", LEAVES, CABLES)
    found = read(tmp_path, "file: fabric.json")
    assert found.all_switches() == found.switches == {1, 2, 3}
    assert found.links == {link(1, 1, 2, 7), link(1, 2, 3, 7)}
    assert found.ports == set()


@pytest.mark.parametrize("suffix", [".json", ".graphml"])
def test_what_topology_make_writes_is_expected(
    tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["topology", "make", "fattree", "--k", "4", "-o", str(tmp_path / f"fabric{suffix}")]) == 0
    found = read(tmp_path, f"file: fabric{suffix}")
    assert (len(found.switches), len(found.links)) == (20, 32)
    assert all(end.port_no >= 1 for cable in found.links for end in cable)
    policy = tmp_path / "policy.yaml"
    capsys.readouterr()
    assert main(["policy", "check", str(policy)]) == 0
    (tmp_path / f"fabric{suffix}").write_text("?")
    assert main(["policy", "check", str(policy)]) == 2
    assert f"{policy}:3: topology.file: fabric{suffix}:1: " in capsys.readouterr().err


def test_paths_are_relative_to_the_policy_file_or_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "etc" / "fabrics").mkdir(parents=True)
    path = write(tmp_path / "etc" / "fabrics" / "fabric.json", LEAVES, CABLES)
    monkeypatch.chdir("/")
    for name in ("fabrics/fabric.json", path):
        assert read(tmp_path / "etc", f"file: {name}").switches == {1, 2, 3}


def test_what_is_written_out_is_expected_as_well(tmp_path: Path) -> None:
    write(tmp_path / "fabric.json", LEAVES, CABLES)
    written = "links: [[{dpid: 2, port: 8}, {dpid: 9, port: 1}]], ports: [{dpid: 3, port: 1}], switches: [8]"
    found = read(tmp_path, f"{{file: fabric.json, {written}}}")
    assert found.all_switches() == {1, 2, 3, 8, 9}
    assert link(2, 8, 9, 1) in found.links
    assert found.ports == {SwitchPort(3, 1)}
    twice = "links: [[{dpid: 2, port: 7}, {dpid: 9, port: 1}]]"
    assert faults(tmp_path, f"{{file: fabric.json, {twice}}}") == [
        (3, "topology.links", "port 2:7 is the end of two links")
    ]


@pytest.mark.parametrize(
    ("nodes", "links", "message"),
    [
        ([switch("a", 0)], [], "fabric.json: nodes[0].dpid: 0 is not a whole number from 1 to 18446744073709551615"),
        ([{"id": "a"}], [], "fabric.json: dpid: switch 'a' has none, by which it could be known"),
        (LEAVES, [cable("spine", "leaf3", 1, 2)], "fabric.json: links[0].target: there is no node 'leaf3'"),
        (
            LEAVES,
            [cable("spine", "leaf1", 1)],
            "fabric.json: ports: the link of 'leaf1' and 'spine' does not tell the port numbers of both ends",
        ),
        (
            LEAVES,
            [cable("spine", "leaf1", 1, 0)],
            "fabric.json: ports: the link of 'leaf1' and 'spine' does not tell the port numbers of both ends",
        ),
    ],
)
def test_faults_of_the_file_are_told_at_the_line_that_names_it(
    tmp_path: Path, nodes: list[Any], links: list[Any], message: str
) -> None:
    write(tmp_path / "fabric.json", nodes, links)
    assert faults(tmp_path, "file: fabric.json") == [(3, "topology.file", message)]


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    assert faults(tmp_path, "file: fabric.json") == [(3, "topology.file", "fabric.json: No such file or directory")]
    (tmp_path / "fabric.json").mkdir()
    assert faults(tmp_path, "file: fabric.json") == [(3, "topology.file", "fabric.json: Is a directory")]
    assert faults(tmp_path, "file: 5")[0][:2] == (3, "topology.file")
    assert faults(tmp_path, "file: ''")[0][:2] == (3, "topology.file")
    (tmp_path / "fabric.edges").write_text("a b 1\nb\n")
    assert faults(tmp_path, "file: fabric.edges")[0][2].startswith("fabric.edges:2: ")


def test_a_policy_that_is_no_file_names_none() -> None:
    with pytest.raises(
        PolicyInvalid, match=r"topology\.file: only a policy that is itself in a file can name another"
    ):
        load_policy("version: 1\ntopology: {file: fabric.json}\n")


def test_all_apps_of_a_process_have_a_large_file_read_once(tmp_path: Path) -> None:
    path = write(tmp_path / "fabric.json", LEAVES, CABLES)
    first, second = (FabricFile(tmp_path / "policy.yaml") for _ in range(2))
    assert first.read("fabric.json") is second.read("fabric.json")
    stamp = path.stat()
    write(path, LEAVES[:1], [])
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert first.has_changed()
    assert first.read("fabric.json").switches == {1}
    assert not first.has_changed()
    assert second.has_changed()
