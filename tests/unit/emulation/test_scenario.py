from __future__ import annotations

from pathlib import Path

import pytest

from apps.emulation.plan import EventPlan, ReceiverPlan, SenderPlan
from apps.emulation.scenario import ScenarioInvalid, load_scenario
from topology.generators import make
from topology.graph import Graph

SCENARIOS = Path(__file__).parents[3] / "scenarios"

GOOD = """\
version: 1
topology: {name: fattree, k: 4}
capacities: yes
warmup_s: 0
duration_s: 2.5
groups:
  - group: 239.1.1.1
    senders: [{host: h1, rate_bps: 1e6}]
    receivers: [h2, {host: h3, include: [h1], igmp_version: 3}]
  - {group: "ff1e::1", senders: [], receivers: [h4]}
events:
  - {at_s: 2, do: leave, host: h2, group: 239.1.1.1}
  - {at_s: 1, do: link-down, link: [s1, s9]}
  - {at_s: 1, do: switch-down, switch: s17}
"""


def no_file(path: Path) -> Graph:
    raise FileNotFoundError(f"{path}: no such file")


def faults(tmp_path: Path, text: str | bytes) -> list[tuple[int, str, str]]:
    path = tmp_path / "scenario.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ScenarioInvalid) as caught:
        load_scenario(path, make, no_file)
    assert str(caught.value).startswith(f"{path}:")
    return [tuple(error) for error in caught.value.errors]


def test_a_scenario_becomes_a_plan(tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(GOOD)
    plan = load_scenario(path, make, no_file)
    assert len(plan.graph.hosts()) == 16
    assert (plan.capacities, plan.warmup_s, plan.duration_s, plan.policy) == (True, 0.0, 2.5, None)
    first, second = plan.groups
    assert first.senders == (SenderPlan("h1", 1e6),)
    assert first.receivers == (ReceiverPlan("h2"), ReceiverPlan("h3", include=("h1",), igmp_version=3))
    assert (second.group, second.senders) == ("ff1e::1", ())
    assert plan.events == (
        EventPlan(1.0, "link-down", ("s1", "s9")),
        EventPlan(1.0, "switch-down", ("s17",)),
        EventPlan(2.0, "leave", ("h2",), "239.1.1.1"),
    )


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_projects_scenarios_are_sound(path: Path) -> None:
    assert load_scenario(path, make, no_file).groups


@pytest.mark.parametrize(
    ("line", "wrong", "line_no", "field", "message"),
    [
        ("version: 1", "version: 2", 1, "version", "not within 1 and 1"),
        ("topology: {name: fattree, k: 4}", "topology: {name: fattre}", 2, "topology.name", "fattre"),
        ("topology: {name: fattree, k: 4}", "topology: {name: fattree, k: 5}", 2, "topology.name", "k"),
        ("topology: {name: fattree, k: 4}", "topology: {file: x.json}", 2, "topology.file", "no such file"),
        ("topology: {name: fattree, k: 4}", "topology: {k: 4}", 2, "topology", "either name"),
        ("capacities: yes", "capacities: 3", 3, "capacities", "true or false"),
        ("capacities: yes", "capacity: yes", 3, "capacity", "unknown key; did you mean 'capacities'?"),
        ("capacities: yes", "policy: nowhere.yaml", 3, "policy", "no such file"),
        ("duration_s: 2.5", "duration_s: 0", 5, "duration_s", "not within"),
        ("  - group: 239.1.1.1", "  - group: 10.0.0.1", 7, "groups[0].group", "not a multicast address"),
        (
            "host: h1, rate_bps: 1e6",
            "host: h99, rate_bps: 1e6",
            8,
            "groups[0].senders[0].host",
            "not in the topology",
        ),
        ("host: h1, rate_bps: 1e6", "host: s1, rate_bps: 1e6", 8, "groups[0].senders[0].host", "no host"),
        ("host: h1, rate_bps: 1e6", "host: h1", 8, "groups[0].senders[0].rate_bps", "missing"),
        ("igmp_version: 3", "igmp_version: 4", 9, "groups[0].receivers[1].igmp_version", "not within"),
        ("igmp_version: 3", "exclude: [h2]", 9, "groups[0].receivers[1]", "cannot both"),
        ("{at_s: 2,", "{at_s: 99,", 12, "events[0].at_s", "not within"),
        ("do: leave, host: h2", "do: leaves, host: h2", 12, "events[0].do", "did you mean 'leave'?"),
        ("do: leave, host: h2, group: 239.1.1.1", "do: leave, host: h2", 12, "events[0]", "needs group"),
        ("do: leave, host: h2", "do: leave, switch: s1, host: h2", 12, "events[0].switch", "no meaning"),
        ("link: [s1, s9]", "link: [s1, s2]", 13, "events[1].link", "not the two ends"),
        ("link: [s1, s9]", "link: [s1]", 13, "events[1].link", "not the two ends"),
        ("switch: s17", "switch: h1", 14, "events[2].switch", "not a switch"),
    ],
)
def test_each_fault_is_told_with_its_line(
    tmp_path: Path, line: str, wrong: str, line_no: int, field: str, message: str
) -> None:
    assert GOOD.count(line) == 1
    found = faults(tmp_path, GOOD.replace(line, wrong))
    assert [(at, where) for at, where, _ in found] == [(line_no, field)]
    assert message in found[0][2]


def test_all_faults_are_told_together(tmp_path: Path) -> None:
    text = GOOD.replace("capacities: yes", "capacities: 7").replace("h4]", "h40]").replace("s17", "s170")
    assert [line for line, _, _ in faults(tmp_path, text)] == [3, 10, 14]


@pytest.mark.parametrize("text", [b"", b"\xff\xfe", b"- 1", b"version: [", b"version: 1\n", b"a: &x 1\nb: *x\n"])
def test_what_is_no_scenario_is_refused(tmp_path: Path, text: bytes) -> None:
    assert faults(tmp_path, text)
