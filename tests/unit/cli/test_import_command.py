"""`vsrt import`: the policy that it writes passes the check, the report has each line, and the exit status tells."""

from __future__ import annotations

import json

import pytest

from apps.cli.main import main
from imported_policy import CONFIGURATIONS

REAL = {
    "faucet": ["campus.yaml"],
    "frr": ["router.conf"],
    "bridge": ["interfaces-ifupdown2"],
    "ovs": ["ovs-show.txt"],
}
OF_BRIDGES = ["interfaces-ifupdown", "link.json vlan.json mdb.json"]
TAKEN = "vlans: {office: {vid: 100}}\ndps: {s1: {dp_id: 1, interfaces: {1: {native_vlan: office}}}}\n"


def lines_of(paths):
    return [
        (str(path), number, text) for path in paths for number, text in enumerate(path.read_text().splitlines(), 1)
    ]


@pytest.mark.parametrize(
    ("program", "names"), [*REAL.items(), *(("bridge", names.split()) for names in OF_BRIDGES)], ids=str
)
def test_a_configuration_is_reported_line_by_line_and_its_policy_passes_the_check(tmp_path, capsys, program, names):
    output = tmp_path / "policy.yaml"
    files = [CONFIGURATIONS / name for name in names]
    status = main(["import", program, *map(str, files), "-o", str(output), "--json"])
    document = json.loads(capsys.readouterr().out)
    read = [*files, *([CONFIGURATIONS / "campus-acls.yaml"] if program == "faucet" else [])]
    assert [(line["file"], line["line"], line["text"]) for line in document["lines"]] == lines_of(read)
    assert sum(document["counts"].values()) == len(document["lines"])
    assert status == 1, "each of them has something impossible"
    assert output.read_text() == document["policy"]
    assert main(["policy", "check", str(output), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["errors"] == []


def test_status_0_where_nothing_is_impossible(tmp_path, capsys):
    file = tmp_path / "faucet.yaml"
    file.write_text(TAKEN)
    assert main(["import", "faucet", str(file), "--all"]) == 0
    out = capsys.readouterr().out
    assert "taken: VLAN 100, called office" in out
    assert out.endswith("2 lines: 0 impossible, 0 changed, 2 taken, 0 idle\n")


def test_lines_that_need_no_look_are_shown_only_if_asked(tmp_path, capsys):
    file = tmp_path / "faucet.yaml"
    file.write_text(TAKEN + "routers: {r: {vlans: [office]}}\n")
    assert main(["import", "faucet", str(file)]) == 1
    out = capsys.readouterr().out
    assert f"{file}:3" in out
    assert f"{file}:1" not in out
    assert "keep a router" in out


@pytest.mark.parametrize(
    ("program", "text", "message"),
    [
        ("faucet", "vlans: {a: {vid: 0}}\n", "faucet.yaml:1: '0' is no VLAN"),
        ("faucet", "\tvlans:\n", "faucet.yaml:1: YAML syntax"),
        ("frr", "interface e\n ip address x\n", "faucet.yaml:2: 'x' is no address"),
        ("bridge", "[", "faucet.yaml:1: JSON syntax"),
        ("ovs", "{}", "faucet.yaml:1: no table"),
    ],
)
def test_bad_input_is_status_2_and_writes_nothing(tmp_path, capsys, program, text, message):
    file, output = tmp_path / "faucet.yaml", tmp_path / "policy.yaml"
    file.write_text(text)
    assert main(["import", program, str(file), "-o", str(output)]) == 2
    assert message in capsys.readouterr().err
    assert not output.exists()


def test_what_cannot_be_read_is_named(tmp_path, capsys):
    file = tmp_path / "binary"
    file.write_bytes(b"a\n\xff")
    assert main(["import", "frr", str(file)]) == 2
    assert f"{file}:2: byte 0xff is not UTF-8 text" in capsys.readouterr().err
    assert main(["import", "frr", str(tmp_path / "gone")]) == 2
    assert "gone: No such file" in capsys.readouterr().err
    file.write_text("\n")
    assert main(["import", "frr", str(file), str(file)]) == 2
    assert "named twice" in capsys.readouterr().err
    assert main(["import", "frr", str(file), "--at", "eth0"]) == 2
    assert "--at 'eth0': expected NAME=DPID:PORT" in capsys.readouterr().err


def test_a_file_that_is_there_is_left_as_it_is(tmp_path, capsys):
    file, output = tmp_path / "faucet.yaml", tmp_path / "policy.yaml"
    file.write_text(TAKEN)
    output.write_text("mine\n")
    assert main(["import", "faucet", str(file), "-o", str(output)]) == 2
    assert "there already" in capsys.readouterr().err
    assert output.read_text() == "mine\n"
