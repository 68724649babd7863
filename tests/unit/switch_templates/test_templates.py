"""Templates: what their files may say, what has to be changed for them, where two fight, and what undoes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from apps.emulation.ovs import SCHEMA
from controller.config.faults import PolicyInvalid
from controller.switch_templates.columns import settings_of
from controller.switch_templates.plan import SettingsRow, faults_of, operations, plan, undoing
from controller.switch_templates.templates import SHIPPED, read_templates

KINDS = settings_of(json.loads(Path(SCHEMA).read_text()))


def templates(text):
    return read_templates(f"version: 1\ntemplates:\n{text}".encode(), "t.yaml")


def bridge(**values):
    given = {"fail_mode": (), "protocols": (), "stp_enable": False, "other_config": {}, **values}
    return SettingsRow("unix:a", "Bridge", "u1", "br0", 1, None, given)


def planned(text, *rows):
    return plan(templates(text), rows or (bridge(),), KINDS, lambda *_: True)


def changes_of(text, *rows):
    return {change.setting: (change.before, change.after) for change in planned(text, *rows).changes}


def test_shipped_templates_are_what_the_schema_takes():
    assert list(faults_of(read_templates(SHIPPED.encode(), "shipped"), KINDS)) == []


def test_settings_that_are_otherwise_are_changed_and_no_others():
    text = "  a: {bridge: {fail_mode: secure, stp_enable: false, 'other_config:x': 'y', protocols: [OpenFlow13]}}\n"
    assert changes_of(text) == {
        "fail_mode": ((), ("secure",)),
        "other_config:x": (None, "y"),
        "protocols": ((), ("OpenFlow13",)),
    }
    assert changes_of(text, bridge(fail_mode=("secure",), protocols=("OpenFlow13",), other_config={"x": "y"})) == {}


def test_nothing_empties_a_column_and_takes_a_key_away():
    text = "  a: {bridge: {fail_mode: null, 'other_config:x': null}}\n"
    assert changes_of(text, bridge(fail_mode=("secure",), other_config={"x": "y", "z": "1"})) == {
        "fail_mode": (("secure",), ()),
        "other_config:x": ("y", None),
    }


def test_templates_that_fight_are_told_with_both_places():
    text = "  a: {bridge: {fail_mode: secure}}\n"
    text += "  b:\n    bridge:\n      fail_mode: standalone\n      stp_enable: false\n"
    (conflict,) = planned(text).conflicts
    assert str(conflict) == ("Bridge br0, fail_mode: a (t.yaml:3) wants secure, and b (t.yaml:6) wants standalone")


def test_templates_that_agree_do_not_fight():
    text = (
        "  a: {bridge: {protocols: [OpenFlow13, OpenFlow10]}}\n  b: {bridge: {protocols: [OpenFlow10, OpenFlow13]}}\n"
    )
    assert planned(text).conflicts == ()
    assert len(planned(text).changes) == 1


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("  a: {}\n", 3, "no settings"),
        ("  a: {bridge: {fail_mode: {x: y}}}\n", 3, "COLUMN:KEY"),
        ("  a: {bridge: {'other_config:': y}}\n", 3, "expected COLUMN"),
        ("  a: {select: 'tier', bridge: {stp_enable: true}}\n", 3, "position 5"),
        ("  a: {brigde: {stp_enable: true}}\n", 3, "brigde"),
        ("  a: {bridge: {stp_enable: true}}\n  a: {bridge: {stp_enable: true}}\n", 4, "a"),
    ],
)
def test_a_file_that_says_nothing_is_refused_with_its_line(text, line, message):
    with pytest.raises(PolicyInvalid) as refused:
        templates(text)
    assert [
        error for error in refused.value.errors if error.line == line and message in f"{error.field}{error.message}"
    ]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("fail_mode: sure", "'sure' is none of standalone, secure"),
        ("stp_enable: maybe", "'maybe' is no boolean"),
        ("stp_enable: null", "None is no boolean"),
        ("stp_enable: 1", "1 is no boolean"),
        ("other_config: x", "COLUMN:KEY"),
        ("'stp_enable:x': true", "it has no keys"),
        ("'other_config:x': 5", "5 is no string"),
        ("protocols: [OpenFlow13, 3]", "3 is no string"),
        ("fail_mode: [secure, standalone]", "2 values; the column has 1 at most"),
        ("ports: x", "no such column"),
        ("name: br1", "no such column"),
        ("flood_vlans: [5000]", "5000 is not from 0 to 4095"),
    ],
)
def test_a_setting_that_the_database_has_not_is_told_with_its_place(setting, message):
    (fault,) = faults_of(templates(f"  a: {{bridge: {{{setting}}}}}\n"), KINDS)
    assert fault.startswith("t.yaml:3: a: ")
    assert message in fault


def test_undoing_gives_back_what_was_and_leaves_what_is_so_already():
    changes = planned("  a: {bridge: {fail_mode: secure, stp_enable: true, 'other_config:x': 'y'}}\n").changes
    now = bridge(fail_mode=("secure",), stp_enable=False, other_config={"x": "y", "z": "1"})
    back, others, gone = undoing(changes, {("unix:a", "u1"): now})
    assert {change.setting: change.after for change in back} == {"fail_mode": (), "other_config:x": None}
    assert (others, gone) == ([], [])


def test_undoing_is_forbidden_by_what_somebody_changed_since_and_tells_what_is_gone():
    changes = planned("  a: {bridge: {fail_mode: secure}}\n").changes
    _, others, _ = undoing(changes, {("unix:a", "u1"): bridge(fail_mode=("standalone",))})
    assert others == ["Bridge br0, fail_mode: [standalone] now, and not [secure] as it was made"]
    assert undoing(changes, {}) == ([], [], ["Bridge br0"])


def test_a_transaction_waits_once_for_each_column_as_it_was_read():
    row = bridge(other_config={"x": "1"})
    changes = planned("  a: {bridge: {'other_config:x': '2', 'other_config:z': '3'}}\n", row).changes
    done = operations(changes, {("unix:a", "u1"): row}, KINDS)
    assert [operation["op"] for operation in done] == ["wait", "mutate", "mutate"]
    assert done[0]["rows"] == [{"other_config": ["map", [["x", "1"]]]}]
    assert done[1]["mutations"] == [
        ["other_config", "delete", ["set", ["x"]]],
        ["other_config", "insert", ["map", [["x", "2"]]]],
    ]
