from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import networkx
import pytest

from apps.cli.main import main
from controller.config import load_policy
from fed_controller import FedController, multicast_documents
from topology.files import parse
from topology.files.node_link import document
from topology.generators import GENERATORS, make

ROOT = Path(__file__).parents[3]


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["topology", *arguments]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


@pytest.mark.parametrize("flag", [[], ["--json"]])
def test_make_prints_node_link_json(flag: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    shown = json.loads(output(capsys, "make", "fattree", "--k", "4", *flag))
    assert shown == document(make("fattree", {"k": 4}), {"name": "fattree", "k": 4})
    graph = networkx.node_link_graph(shown, edges="links")
    assert (graph.number_of_nodes(), graph.number_of_edges()) == (36, 48)


def test_options_are_the_parameters_of_the_generators(capsys: pytest.CaptureFixture[str]) -> None:
    line = "make jellyfish --switches 10 --degree 3 --hosts-per-switch 1 --seed 7 --capacity-bps 1e8"
    parameters = {"switches": 10, "degree": 3, "hosts_per_switch": 1, "seed": 7, "capacity_bps": 1e8}
    shown = json.loads(output(capsys, *line.split()))
    assert shown["links"] == document(make("jellyfish", parameters))["links"]


@pytest.mark.parametrize("suffix", [".json", ".graphml", ".out"])
def test_make_writes_files_that_can_be_read(suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / f"fabric{suffix}"
    shown = output(capsys, "make", "avalanche24", "-o", str(path))
    assert [line.split() for line in shown.splitlines()[1:]] == [
        ["host", "24"],
        ["tor", "6"],
        ["aggregation", "6"],
        ["core", "2"],
        ["links", "between", "switches", "24"],
        ["links", "to", "hosts", "24"],
    ]
    graph = parse(path.read_bytes(), path.name).graph
    assert list(graph.links()) == list(make("avalanche24").links())


def test_make_with_a_file_and_json_prints_the_document_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "fabric.json"
    shown = output(capsys, "make", "tree", "-o", str(path), "--json")
    assert json.loads(shown) == json.loads(path.read_text())


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ("fattree --k 3", 2, ("vsrt: k: 3", "even", "2 to 64")),
        ("fattree --k 4.5", 2, ("k: 4.5",)),
        ("fattree --k four", 2, ("--k", "'four'")),
        ("fattree --depth 2", 2, ("depth", "fattree")),
        ("jellyfish --switches 5 --degree 5", 2, ("degree: 5",)),
        ("torus", 2, ("'torus'", "fattree")),
        ("tree -o fabric.stp", 2, ("fabric.stp", ".graphml")),
        ("tree -o missing/fabric.json", 1, ("missing/fabric.json", "No such file")),
    ],
)
def test_faults_are_named_on_standard_error(
    arguments: str,
    status: int,
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["topology", "make", *arguments.split()]) == status
    captured = capsys.readouterr()
    assert captured.out == ""
    for word in words:
        assert word in captured.err
    assert list(tmp_path.iterdir()) == []


def test_list_tells_every_generator(capsys: pytest.CaptureFixture[str]) -> None:
    shown = json.loads(output(capsys, "list", "--json"))
    assert {name: [p["name"] for p in entry["parameters"]] for name, entry in shown.items()} == {
        name: [parameter.name for parameter in generator.parameters] for name, generator in GENERATORS.items()
    }
    lines = output(capsys, "list").splitlines()
    assert [line.split()[0] for line in lines[1:-1]] == list(GENERATORS)


def test_the_documentation_has_every_generator_and_parameter() -> None:
    text = (ROOT / "docs" / "topologies.md").read_text(encoding="utf-8")
    for name, generator in GENERATORS.items():
        section = text.partition(f"### {name}\n")[2].partition("\n##")[0]
        for parameter in generator.parameters:
            place = text if parameter.name == "capacity_bps" else section
            assert f"--{parameter.name.replace('_', '-')}" in place, name


def test_as_a_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "apps.cli.main", "topology", "make", "fattree", "--k", "5"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("vsrt: k: 5 ")


def test_the_live_fabric_is_recorded_as_the_one_that_is_expected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documents = multicast_documents()
    documents["switches"]["4"]["connected"] = False
    failed = {"dpid_a": 1, "port_a": 4, "dpid_b": 10, "port_b": 1, "state": "failed"}
    documents["links"]["1:4-10:1"] = failed
    controller = FedController(tmp_path / "vsrt.sock", documents)
    controller.start()
    try:
        written = output(capsys, "record", "--socket", str(controller.path))
        shown = json.loads(output(capsys, "record", "--json", "--socket", str(controller.path)))
        output(capsys, "record", "--socket", str(controller.path), "-o", str(tmp_path / "fabric.yaml"))
    finally:
        controller.stop()
    expected = load_policy(f"version: 1\n{written}").topology
    assert expected.switches == {1, 3, 10}
    assert [str(link) for link in expected.links] == ["1:3-3:1"]
    assert load_policy(json.dumps({"version": 1, **shown})).topology == expected
    assert (tmp_path / "fabric.yaml").read_text() == written
