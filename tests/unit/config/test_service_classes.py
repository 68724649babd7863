"""The sections `classes`, `aliases` and `queues`: what they may say, and every fault with its line."""

from __future__ import annotations

import pytest

from controller.config import PolicyInvalid, load_policy
from controller.config.policy import Policy
from controller.config.read_classes import MAX_CLASSES
from controller.config.service_class_settings import Aliases, QueuePolicy, StaticTrees
from controller.config.service_classes import DSCP_NAMES
from controller.config.terms import SwitchPort, parse_prefix
from controller.service_classes.goals import Goal, GoalKind

EXAMPLE = """\
version: 1
tenants: {tenant2: [10.0.0.2]}
classes:
  - {name: market, importance: 1, groups: [239.1.0.0/16], goal: {loss_pct: 0.1}, dscp: ef}
  - {name: backup, importance: 6, hosts: [tenant2, 10.0.0.9], aliases: false}
  - {name: rest, importance: 5, hosts: any, dscp: 10}
aliases: {mode: off, pool: 64, per_group: 4, static: {239.1.1.0/24: 3}, split: sender, pace: steady}
queues: {mode: off, floor_pct: 1, interval_s: 2, ovsdb: ["unix:/run/db.sock"], trust: [{dpid: 1, port: 3}]}
"""


def loaded(*lines: str) -> Policy:
    return load_policy("version: 1\n" + "".join(f"{line}\n" for line in lines))


def faults_of(*lines: str) -> list[tuple[int, str, str]]:
    with pytest.raises(PolicyInvalid) as caught:
        loaded(*lines)
    return [tuple(error) for error in caught.value.errors]


def test_the_example():
    policy = load_policy(EXAMPLE)
    market, backup, rest = policy.classes
    assert (market.name, market.importance, market.dscp, market.aliases) == ("market", 1, 46, True)
    assert market.goal == Goal(GoalKind.LOSS, 0.1)
    assert market.groups == (parse_prefix("239.1.0.0/16"),) and not market.any_host
    assert backup.tenants == ("tenant2",) and backup.hosts == (parse_prefix("10.0.0.9"),)
    assert backup.goal is None and backup.dscp is None and not backup.aliases
    assert rest.any_host and rest.dscp == 10
    assert policy.aliases == Aliases(static=(StaticTrees(parse_prefix("239.1.1.0/24"), 3),))
    assert policy.queues == QueuePolicy(ovsdb=("unix:/run/db.sock",), trust=frozenset({SwitchPort(1, 3)}))
    assert policy.warnings == ()


def test_without_the_sections_all_is_off():
    policy = loaded()
    assert policy.classes == () and policy.aliases.mode == policy.queues.mode == "off"


def test_a_mode_that_is_not_carried_out_is_warned_of():
    warnings = loaded("aliases:", "  mode: dynamic", "  split: flow", "queues: {mode: goal}").warnings
    assert [(each.line, each.field) for each in warnings] == [(5, "queues.mode")]
    assert loaded("aliases: {mode: static}").warnings == loaded("aliases: {mode: dynamic}").warnings == ()


def test_queues_that_nobody_sets_up_are_warned_of():
    (warning,) = loaded("queues: {mode: static}").warnings
    assert warning.field == "queues.mode" and "without ovsdb" in warning.message
    assert loaded('queues: {mode: static, ovsdb: ["unix:/run/db.sock"]}').warnings == ()


def warnings_of(*lines: str) -> list[tuple[int, str, str]]:
    return [tuple(each) for each in loaded(*lines).warnings]


def test_classes_that_code_points_do_not_tell_apart_are_warned_of():
    lines = (
        "classes:",
        "  - {name: voice, importance: 1, hosts: [10.0.0.1], dscp: ef}",
        "  - {name: video, importance: 2, hosts: [10.0.0.2], dscp: 46}",
        "  - {name: feed, importance: 3, groups: [239.1.0.0/16]}",
        "  - {name: desk, importance: 4, hosts: [10.0.0.3]}",
        "  - {name: own, importance: 5, hosts: [10.0.0.4], dscp: af11}",
        "  - {name: bulk, importance: 6, hosts: any}",
    )
    queues = 'queues: {mode: goal, ovsdb: ["unix:/run/db.sock"]}'
    only = "to one host wait in queue {} only at the switch where they enter, and behind it in queue {}, since"
    assert warnings_of(*lines, queues) == [
        (
            *(3, "classes[0]"),
            f"Packets of class voice {only.format(6, 5)} class video has the code point 46 as well; a dscp of its own"
            " tells it apart",
        ),
        (
            *(6, "classes[3]"),
            f"Packets of class desk {only.format(3, 1)} packets of no class have the code point 0 as well; a dscp of"
            " its own tells it apart",
        ),
    ]
    assert warnings_of(*lines, "queues: {mode: mark}") == warnings_of(*lines) == []


def test_classes_that_nothing_is_in_are_warned_of():
    assert warnings_of(
        "tenants: {empty: []}",
        "classes:",
        "  - {name: all groups, importance: 1, groups: [224.0.0.0/4]}",
        "  - {name: lost, importance: 2, groups: [239.1.0.0/16], hosts: [10.0.0.1]}",
        "  - {name: desk, importance: 3, hosts: [10.0.0.1]}",
        "  - {name: nobody, importance: 4, hosts: [empty]}",
    ) == [
        (2, "tenants.empty", "the tenant has no hosts"),
        (5, "classes[1]", "nothing is ever in class 'lost': 'all groups' (line 4) comes first"),
        (7, "classes[3]", "nothing is ever in class 'nobody': its tenants have no hosts"),
    ]


def test_marks_are_carried_out():
    assert loaded("queues: {mode: mark}").warnings == ()


def test_names_of_code_points():
    assert (DSCP_NAMES["af41"], DSCP_NAMES["cs5"], DSCP_NAMES["le"]) == (34, 40, 1)
    assert len(DSCP_NAMES) == 8 + 12 + 3


A_CLASS = "name: a, importance: 1, groups: [239.1.0.0/16]"


@pytest.mark.parametrize(
    ("said", "field", "message"),
    [
        ("goal: {loss_pct: 1, delay_ms: 2}", "goal", "2 goals (loss_pct, delay_ms); a class has one"),
        ("goal: {}", "goal", "no goal; expected one of loss_pct, delay_ms, velocity_pct, rate_bps"),
        ("goal: {loss_pct: 100}", "goal.loss_pct", "100 is not within 0 and 99.999"),
        ("goal: {delay: 2}", "goal.delay", "unknown key"),
        ("dscp: eff", "dscp", "unknown DSCP 'eff': expected 0 to 63, cs0 to cs7, af11 to af43, ef, va or le"),
        ("dscp: 64", "dscp", "64 is not within 0 and 63"),
        ("dscp: [1]", "dscp", "expected a code point: 0 to 63, or a name such as ef, found a list"),
        ("aliases: maybe", "aliases", "expected true or false, found the text 'maybe'"),
        ("hosts: []", "hosts", "no hosts, so that it never applies"),
    ],
)
def test_faults_of_a_class(said: str, field: str, message: str):
    ((line, path, told),) = faults_of("classes:", f"  - {{{A_CLASS}, {said}}}")
    assert (line, path) == (3, f"classes[0].{field}")
    assert told.startswith(message)


def test_faults_between_keys_and_classes():
    found = faults_of(
        "classes:",
        f"  - {{{A_CLASS}}}",
        f"  - {{{A_CLASS}}}",
        "  - {name: b, importance: 6, groups: [239.2.0.0/16], goal: {loss_pct: 1}}",
        "  - {name: c, importance: 0, groups: [], hosts: any}",
        "  - {name: d, importance: 2}",
        "  - {groups: [10.0.0.0/8]}",
    )
    assert found == [
        (4, "classes[1].name", "'a' is already the name of the class on line 3"),
        (5, "classes[2].goal", "a class of importance 6 is discretionary and has no goal"),
        (6, "classes[3].groups", "no groups, so that nothing is in the class"),
        (6, "classes[3].importance", "0 is not within 1 and 6"),
        (7, "classes[4]", "neither groups nor hosts, so that nothing is in the class"),
        (8, "classes[5].groups[0]", "'10.0.0.0/8' is not within the multicast addresses 224.0.0.0/4 or ff00::/8"),
        (8, "classes[5].importance", "missing"),
        (8, "classes[5].name", "missing"),
    ]


def test_two_goals_are_told_at_the_second():
    found = faults_of("classes:", f"  - {{{A_CLASS},", "     goal: {loss_pct: 1,", "            delay_ms: 2}}")
    assert [(line, field) for line, field, _ in found] == [(5, "classes[0].goal")]


def test_too_many_classes_are_refused():
    lines = [f"  - {{name: c{number}, importance: 3, hosts: any}}" for number in range(MAX_CLASSES + 1)]
    assert faults_of("classes:", *lines) == [(3, "classes", f"{MAX_CLASSES + 1} classes; at most 256 are supported")]


def test_faults_of_aliases():
    assert faults_of("aliases:", "  per_group: 2", "  static:", "    239.1.1.1: 2", "    239.1.2.0/24: 3") == [
        (6, "aliases.static['239.1.2.0/24']", "239.1.2.0/24 has 3 aliases; per_group allows 2")
    ]
    ((line, _, message),) = faults_of("aliases:", "  per_group: 15", "  static: {239.1.1.1: 16}")
    assert (line, message) == (4, "16 is not within 1 and 15")
    assert faults_of("aliases:", "  pool: 3", "  static: {239.1.1.1: 2, 239.1.1.2: 2}") == [
        (4, "aliases.static", "4 static aliases; the pool holds 3")
    ]
    ((line, _, message),) = faults_of("aliases:", "  static:", "    239.1.1.1/32: 1", "    239.1.1.1: 1")
    assert (line, message) == (5, "239.1.1.1 has its number already, on line 4")
    ((line, _, message),) = faults_of("aliases:", "  static: {10.0.0.1: 1}")
    assert line == 3 and "10.0.0.1" in message
    ((line, _, message),) = faults_of("aliases: {mode: hurried}")
    assert line == 2 and message.startswith("expected one of off, static, dynamic")


def test_faults_of_queues():
    assert faults_of("queues: {ovsdb: [here], floor_pct: 13}") == [
        (2, "queues.floor_pct", "13 is not within 0 and 12.5"),
        (2, "queues.ovsdb[0]", "'here' is neither unix:PATH nor tcp:HOST:PORT"),
    ]
