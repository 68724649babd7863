from __future__ import annotations

from pathlib import Path

import pytest

from apps.cli.main import main
from apps.emulation.experiment import Conditions, policy_text
from apps.emulation.plan import ExperimentPlan
from apps.fabric_file import FabricFile
from capture_files import data, pcap
from controller.config.load import load_policy
from topology.graph import Graph

EXAMPLE = Path(__file__).parents[3] / "policies" / "example.yaml"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["avalanche24", "--algorithm", "vsrtt"], "--algorithm: 'vsrtt' is none of vsrt,"),
        (["avalanche24", "--duration-s", "0"], "--duration-s: 0 is not within 0.1 and 3600"),
        (["avalanche24", "--warmup-s", "-1"], "--warmup-s: -1 is not within"),
        (["avalanche24", "--openflow", "1.0"], "add --no-capacities"),
        (["nowhere.yaml"], "nowhere.yaml: No such file or directory"),
        ([], "what is to be run? A scenario, `avalanche24`, or --replay with a capture"),
        (["avalanche24", "--speed", "2"], "--speed is that of a replay: add --replay"),
        (["avalanche24", "--plot", "plots"], "--plot is of a replay: add --replay"),
        (["avalanche24", "--replay", "x.pcap", "--duration-s", "2"], "--duration-s: a replay lasts as long as"),
        (["--replay", "x.pcap"], "x.pcap: No such file or directory"),
        (["avalanche24", "--replay", "x.pcap"], "x.pcap: No such file or directory"),
        (["avalanche24", "--replay", "x.pcap", "--speed", "0"], "'0' is no number from 0.01 to 100"),
    ],
)
def test_bad_input_is_told_and_exits_with_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["emulate", *arguments]) == 2
    told = capsys.readouterr()
    assert message in told.err
    assert told.out == ""


def test_a_capture_that_cannot_be_replayed_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "feed.pcap"
    path.write_bytes(pcap([(0, data("239.1.1.1")), (10**9, data("239.1.1.1"))]))
    assert main(["emulate", "avalanche24", "--replay", str(path)]) == 2
    assert f"{path}: the scenario's `addresses` say for nobody" in capsys.readouterr().err
    assert main(["emulate", "--replay", str(path)]) == 2
    assert f"{path}: nobody asks for one of its groups" in capsys.readouterr().err
    path.write_bytes(path.read_bytes()[:-3])
    assert main(["emulate", "avalanche24", "--replay", str(path)]) == 2
    assert f"{path}: byte 198, frame 2: the file is cut" in capsys.readouterr().err


def test_faults_of_a_scenario_are_told_with_their_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text("version: 1\ntopology: {name: tree}\ngroups: []\nevent: []\nduration_s: x\n")
    assert main(["emulate", str(path)]) == 2
    told = capsys.readouterr().err
    assert f"{path}:4: event: unknown key" in told
    assert f"{path}:5: duration_s: expected a number" in told


def test_the_run_has_a_plans_policy_with_its_own_algorithm_and_seed() -> None:
    wanted = load_policy(EXAMPLE.read_text(), "example")
    plan = ExperimentPlan(Graph(), (), policy=EXAMPLE)
    found = load_policy(policy_text(plan, Conditions("steiner", 42)), "run")
    assert (found.multicast.tree, found.multicast.seed) == ("steiner", 42)
    assert (found.tenants, found.rules, found.default_allow) == (wanted.tenants, wanted.rules, wanted.default_allow)
    assert (found.limits, found.multicast.querier) == (wanted.limits, wanted.multicast.querier)


def test_the_topology_file_that_the_policy_names_is_found(tmp_path: Path) -> None:
    (tmp_path / "fabric.json").write_text('{"nodes": [{"id": "s1", "dpid": 1}], "links": []}')
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\ntopology: {file: fabric.json}\n")
    text = policy_text(ExperimentPlan(Graph(), (), policy=policy), Conditions("vsrt"))
    found = load_policy(text, "run", FabricFile(Path("/elsewhere/policy.yaml")).read)
    assert found.topology.switches == {1}


def test_without_a_policy_everybody_is_admitted() -> None:
    found = load_policy(policy_text(ExperimentPlan(Graph(), ()), Conditions("vsrt")), "run")
    assert found.default_allow
    assert found.rules == ()
