"""Discovered policies as templates: whom they are about, and values as the database has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.cli.main import main
from controller.switch_templates.templates import SwitchTemplate, read_templates

NUMBERS = range(1, 13)


def templates_of(tmp_path: Path, changes: list[tuple[str, str, str]], racks: bool = False) -> list[SwitchTemplate]:
    """Find policies in changes, each a resource, a property and its value, beside twice as many ports."""
    log, ports, output = (tmp_path / name for name in ("changes.csv", "ports.csv", "found.yaml"))
    quoted = (f'"{value.replace(chr(34), chr(34) * 2)}"' for _, _, value in changes)
    lines = [f'1,{name},port,"{held}",,{value}' for (name, held, _), value in zip(changes, quoted, strict=True)]
    log.write_text("\n".join(["time,resource,type,property,old,new", *lines]) + "\n")
    rows = [f"26:{number},port,{'b7' if number in NUMBERS else 'b8'}" for number in range(1, 40)]
    ports.write_text("\n".join([f"resource,type,{'rack' if racks else 'of rack'}", *rows]) + "\n")
    assert main(["policy", "discover", "--log", str(log), "--inventory", str(ports), "-o", str(output)]) == 0
    return list(read_templates(output.read_bytes(), "found.yaml")) if output.exists() else []


def settings_of(template: SwitchTemplate) -> dict[tuple[str, str, str | None], object]:
    return {(one.table, one.column, one.key): one.value for one in template.settings}


def test_values_are_what_the_columns_have(tmp_path):
    values = {
        "interface.mtu_request": "9000",
        "interface.options:guard": "on: 1 # \x85\u2028\"'",
        "interface.other_config:a:b": "7",
        "port.trunks": "[1, 2]",
        "port.protected": "true",
        "port.lacp": "off",
        "port.tag": "x: [1",
    }
    changes = [(f"26:{number}", held, value) for number in NUMBERS for held, value in values.items()]
    (template,) = templates_of(tmp_path, changes, racks=True)
    assert (template.name, template.select, template.resources) == ("policy-1", "rack=b7", None)
    assert settings_of(template) == {
        ("Interface", "mtu_request", None): 9000,
        ("Interface", "options", "guard"): values["interface.options:guard"],
        ("Interface", "other_config", "a:b"): "7",
        ("Port", "trunks", None): (1, 2),
        ("Port", "protected", None): True,
        ("Port", "lacp", None): "off",
        ("Port", "tag", None): "x: [1",
    }


def test_resources_are_listed_by_what_they_are_held_to_and_what_no_template_has_is_said(tmp_path):
    changes = [
        (f"26:{number}", held, value)
        for number in NUMBERS
        for held, value in (
            ("interface.mtu_request", "9000" if number % 2 else "2000"),
            ("port.vlan_mode", "access"),
            ("interface.type", "system"),
            ("labels.a", "1"),
        )
    ]
    found = templates_of(tmp_path, changes)
    assert [(template.name, template.resources) for template in found] == [
        ("policy-1", {(26, number) for number in NUMBERS if number % 2}),
        ("policy-1-2", {(26, number) for number in NUMBERS if not number % 2}),
    ]
    assert [settings_of(template)["Interface", "mtu_request", None] for template in found] == [9000, 2000]
    assert (
        "  # without interface.type, labels.a, which no template can have\n" in (tmp_path / "found.yaml").read_text()
    )


@pytest.mark.parametrize("name", ["labels.a", "controller.max_backoff", "interface.nothing", "bridge.other_config"])
def test_where_no_setting_is_one_of_a_database_nothing_is_written(tmp_path, name, capsys):
    changes = [(f"26:{number}", held, "5") for number in NUMBERS for held in (name, f"{name}.b", f"{name}.c")]
    assert templates_of(tmp_path, changes) == []
    assert "found.yaml is not written: no policy has a setting" in capsys.readouterr().err


def test_resources_that_are_no_switch_and_no_port_are_left_out(tmp_path):
    held = ("interface.mtu_request", "port.tag", "port.lacp")
    for name in ("leaf", "0:1", "26:0", "99999999999999999999:1", "26:99999999999"):
        assert templates_of(tmp_path, [(f"{name}{n}", one, "5") for n in ("", *"abcdefg") for one in held]) == []


def test_a_dendrogram_is_no_template(tmp_path, capsys):
    (tmp_path / "changes.csv").write_text("time,resource,type,property,old,new\n")
    words = ["--log", str(tmp_path / "changes.csv"), "--method", "seed", "-o", "found.yml"]
    assert main(["policy", "discover", *words]) == 2
    assert "a dendrogram is no template" in capsys.readouterr().err
