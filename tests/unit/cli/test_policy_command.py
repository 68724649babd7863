"""`vsrt policy check` and `vsrt policy explain`."""

import argparse
import json
from pathlib import Path

import pytest

from apps.cli import policy_command
from apps.cli.common import InputError
from apps.cli.policy_command import parse_host
from controller.admission import Host
from controller.wire.addresses import parse_ip

EXAMPLE = Path(__file__).parents[3] / "policies" / "example.yaml"


def run(*words: str) -> int:
    parser = argparse.ArgumentParser(prog="vsrt policy")
    parser.add_argument("--json", action="store_true")
    policy_command.add_arguments(parser)
    return policy_command.run(parser.parse_args([str(word) for word in words]))


def explain(capsys: pytest.CaptureFixture[str], **options: str) -> dict[str, object]:
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    assert run("explain", str(EXAMPLE), *words, "--json") == 0
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


def test_a_good_file(capsys: pytest.CaptureFixture[str]):
    assert run("check", str(EXAMPLE), "--json") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {"ok": True, "errors": [], "warnings": []}
    assert captured.err == ""


def test_a_faulty_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "policy.yaml"
    path.write_text("version: 1\ndefault: perhaps\nlimits: {groups: 0}\n")
    assert run("check", str(path), "--json") == 2
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert document["ok"] is False
    assert [(error["line"], error["field"]) for error in document["errors"]] == [(2, "default"), (3, "limits.groups")]
    assert "expected one of allow, deny" in document["errors"][0]["message"]
    assert f"{path}:2: default: expected one of allow, deny" in captured.err
    assert f"{path}:3: limits.groups: 0 is not within" in captured.err


def test_warnings_do_not_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "policy.yaml"
    path.write_text("version: 1\ntenants:\n  none: []\n")
    assert run("--json", "check", str(path)) == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert document["ok"] is True
    assert document["warnings"] == [{"line": 3, "field": "tenants.none", "message": "the tenant has no hosts"}]
    assert f"{path}:3: tenants.none: warning: the tenant has no hosts" in captured.err


def test_text_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run("check", str(EXAMPLE)) == 0
    assert capsys.readouterr().out == f"{EXAMPLE}: good: 7 rules, 3 tenants\n"
    assert run("explain", str(EXAMPLE), "--host", "10.0.0.5", "--group", "239.1.1.1", "--role", "receiver") == 0
    text = capsys.readouterr().out
    assert text.startswith("admitted by tenant1-feed: the rule on line ")
    assert text.endswith("tenants of the host: tenant1\n")


@pytest.mark.parametrize(
    "words", [["check"], ["explain", "--host", "10.0.0.1", "--group", "239.1.1.1", "--role", "sender"]]
)
def test_a_file_that_is_missing_or_no_file(words: list[str], tmp_path: Path):
    with pytest.raises(InputError, match=r"nowhere\.yaml: No such file"):
        run(words[0], str(tmp_path / "nowhere.yaml"), *words[1:])
    with pytest.raises(InputError, match="directory"):
        run(words[0], str(tmp_path), *words[1:])


def test_json_tells_of_a_missing_file_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(InputError):
        run("check", str(tmp_path / "nowhere.yaml"), "--json")
    told = json.loads(capsys.readouterr().out)
    assert told["ok"] is False
    assert [error["line"] for error in told["errors"]] == [0]
    assert "nowhere.yaml: No such file" in told["errors"][0]["message"]


def test_a_faulty_file_explains_nothing(tmp_path: Path):
    path = tmp_path / "policy.yaml"
    path.write_bytes(b"version: 1\n\xff")
    with pytest.raises(InputError, match=r"policy\.yaml:2: byte 0xff is not UTF-8"):
        run("explain", str(path), "--host", "10.0.0.1", "--group", "239.1.1.1", "--role", "sender")


ANSWERS = [
    ({"host": "10.0.0.5", "group": "239.1.1.1", "role": "receiver"}, True, "tenant1-feed"),
    ({"host": "10.0.0.6", "group": "239.1.1.1", "role": "receiver"}, False, "default"),
    ({"host": "10.0.0.5", "group": "239.1.1.1", "role": "sender"}, False, "default"),
    ({"host": "10.0.0.1", "group": "239.1.1.1", "role": "sender"}, True, "feed-source"),
    ({"host": "10.0.0.6", "group": "239.2.7.7", "role": "sender"}, True, "tenant2-conference"),
    ({"host": "10.0.0.13", "group": "232.1.0.5", "role": "receiver", "source": "10.0.0.1"}, True, "tenant1-channel"),
    ({"host": "10.0.0.13", "group": "232.1.0.5", "role": "receiver", "source": "10.0.0.2"}, False, "default"),
    ({"host": "10.0.0.13", "group": "232.1.0.5", "role": "receiver"}, False, "default"),
    ({"host": "10.0.0.1", "group": "232.1.0.5", "role": "sender"}, True, "channel-source"),
    ({"host": "fe80::5,00:00:00:00:00:05", "group": "ff3e::7", "role": "receiver"}, True, "tenant1-ipv6"),
    ({"host": "00:00:00:00:00:06", "group": "ff3e::7", "role": "receiver"}, False, "default"),
    ({"host": "1:3", "group": "224.0.0.251", "role": "receiver"}, True, "default"),
]


@pytest.mark.parametrize(("options", "admit", "rule"), ANSWERS)
def test_what_the_example_decides(
    options: dict[str, str], admit: bool, rule: str, capsys: pytest.CaptureFixture[str]
):
    answer = explain(capsys, **options)
    assert (answer["admit"], answer["rule"]) == (admit, rule)
    assert answer["reason"]


def test_the_tenants_of_the_host_are_told(capsys: pytest.CaptureFixture[str]):
    answer = explain(capsys, host="10.0.0.5,00:00:00:00:00:05", group="239.1.1.1", role="receiver")
    assert answer["tenants"] == ["tenant1", "tenant1-v6"]


HOSTS = [
    (["10.0.0.1"], Host(bytes(6), parse_ip("10.0.0.1"), 0, 0)),
    (["fe80::1"], Host(bytes(6), parse_ip("fe80::1"), 0, 0)),
    (["1:2:3:4:5:6:7:8"], Host(bytes(6), parse_ip("1:2:3:4:5:6:7:8"), 0, 0)),
    (["00:00:00:00:00:0B"], Host(b"\0\0\0\0\0\x0b", None, 0, 0)),
    (["1:3"], Host(bytes(6), None, 1, 3)),
    (["0xff:3"], Host(bytes(6), None, 255, 3)),
    (["18446744073709551615:4294967040"], Host(bytes(6), None, (1 << 64) - 1, 0xFFFFFF00)),
    (["10.0.0.1, 00:00:00:00:00:0b,1:3"], Host(b"\0\0\0\0\0\x0b", parse_ip("10.0.0.1"), 1, 3)),
    (["1:3", "10.0.0.1"], Host(bytes(6), parse_ip("10.0.0.1"), 1, 3)),
]


@pytest.mark.parametrize(("texts", "host"), HOSTS)
def test_hosts_are_told_apart_by_their_form(texts: list[str], host: Host):
    assert parse_host(texts) == host


BAD_HOSTS = [
    (["10.0.0.256"], "10.0.0.256"),
    (["10.0.0.0/24"], "is a prefix, not one address"),
    (["224.1.1.1"], "is multicast"),
    (["::ffff:10.0.0.1"], "IPv4-mapped"),
    (["fe80::1%eth0"], "has a zone"),
    (["00:00:00:00:0b"], "'00:00:00:00:0b' is not"),
    (["01:00:00:00:00:0b"], "group address"),
    (["0:3"], "no datapath id"),
    (["1:0"], "port 1 to"),
    (["18446744073709551616:1"], "no datapath id"),
    (["10.0.0.1,10.0.0.2"], "a second IP address"),
    (["1:3", "1:4"], "a second dpid:port"),
    (["10.0.0.1,"], "''"),
    (["h7"], "expected an IP address, a MAC address or dpid:port"),
]


@pytest.mark.parametrize(("texts", "message"), BAD_HOSTS)
def test_what_is_no_host(texts: list[str], message: str):
    with pytest.raises(InputError) as caught:
        parse_host(texts)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("group", "source", "message"),
    [
        ("10.0.0.1", None, "not within the multicast addresses"),
        ("239.1.0.0/16", None, "is a prefix"),
        ("group", None, "--group 'group' is not an IPv4 or IPv6 address"),
        ("232.1.1.1", "fd00::1", "not of the group's family"),
        ("232.1.1.1", "239.1.1.1", "--source '239.1.1.1' is multicast"),
    ],
)
def test_bad_groups_and_sources(group: str, source: str | None, message: str):
    words = ["explain", str(EXAMPLE), "--host", "10.0.0.1", "--group", group, "--role", "receiver"]
    with pytest.raises(InputError) as caught:
        run(*words, *(["--source", source] if source else []))
    assert message in str(caught.value)


def test_a_role_must_be_known():
    with pytest.raises(SystemExit) as caught:
        run("explain", str(EXAMPLE), "--host", "10.0.0.1", "--group", "239.1.1.1", "--role", "any")
    assert caught.value.code == 2


ROUTERS = """version: 1
default: allow
rules:
  - {name: uplink, role: router, hosts: [10.0.0.1], action: allow}
  - {name: lab, groups: [239.9.0.0/16], role: router, hosts: [10.0.0.2], action: allow}
  - {name: never, role: router, hosts: [10.0.0.3], action: deny}
multicast: {router_ports: {static: [{dpid: 1, port: 1}], learn: [{dpid: 1, port: 2}]}}
"""


@pytest.mark.parametrize(
    ("host", "group", "admit", "rule"),
    [
        ("10.0.0.1", None, True, "uplink"),
        ("10.0.0.1", "239.1.1.1", True, "uplink"),
        ("10.0.0.2", None, True, "lab"),
        ("10.0.0.2", "239.9.1.1", True, "lab"),
        ("10.0.0.2", "239.1.1.1", False, "default"),
        ("10.0.0.4", None, False, "default"),
        ("10.0.0.4,1:1", None, True, "multicast.router_ports.static"),
        ("10.0.0.4,1:2", "239.1.1.1", True, "multicast.router_ports.learn"),
        ("10.0.0.3,1:2", None, False, "never"),
    ],
)
def test_who_may_be_a_router(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], host: str, group: str | None, admit: bool, rule: str
):
    path = tmp_path / "policy.yaml"
    path.write_text(ROUTERS)
    words = ["--host", host, "--role", "router", *(["--group", group] if group else [])]
    assert run("explain", str(path), *words, "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["admit"], answer["rule"]) == (admit, rule)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--role", "receiver"], "--group: missing"),
        (["--role", "router", "--source", "10.0.0.1"], "--source: a rule about routers has no sources"),
    ],
)
def test_what_a_role_is_asked_with(words: list[str], message: str):
    with pytest.raises(InputError) as caught:
        run("explain", str(EXAMPLE), "--host", "10.0.0.1", *words)
    assert message in str(caught.value)


VLAN_RULE = "{name: one, groups: [239.1.0.0/16], role: receiver, hosts: any, vlan: %s, action: allow}"


@pytest.mark.parametrize(("vlan", "admitted"), [((), True), (("20",), False), (("video",), False), (("10",), True)])
def test_a_host_is_explained_in_the_vlan_in_which_it_asks(tmp_path, capsys, vlan, admitted):
    path = tmp_path / "policy.yaml"
    names = "vlans: {names: {10: storage, 20: video}}"
    path.write_text(f"version: 1\n{names}\nrules: [{VLAN_RULE % '[storage, untagged]'}]\n")
    asked = [word for text in vlan for word in ("--vlan", text)]
    words = ["explain", str(path), "--host", "10.0.0.5", "--group", "239.1.1.1", "--role", "receiver", *asked]
    assert run(*words, "--json") == 0
    assert json.loads(capsys.readouterr().out)["admit"] is admitted


@pytest.mark.parametrize(
    ("vlan", "told"),
    [
        ("30", "no port is in VLAN 30, and the section gives it no name"),
        ("vidoe", "no VLAN is called 'vidoe'; did you mean 'video'?"),
        ("[]", "no VLANs, so that it never applies"),
        ("{}", "VLAN"),
    ],
)
def test_a_rule_about_no_vlan_of_the_policy_is_a_fault(tmp_path, capsys, vlan, told):
    path = tmp_path / "policy.yaml"
    path.write_text(f"version: 1\nvlans: {{names: {{20: video}}}}\nrules:\n  - {VLAN_RULE % vlan}\n")
    assert run("check", str(path)) != 0
    said = capsys.readouterr()
    assert told in said.out + said.err and "rules[0].vlan" in said.out + said.err


CLASSES = """\
version: 1
default: allow
classes:
  - {name: market, importance: 1, groups: [239.1.0.0/16], dscp: ef}
  - {name: plain, importance: 3, groups: [239.2.0.0/16]}
"""


@pytest.mark.parametrize(
    ("group", "host", "told", "class_", "dscp"),
    [
        ("239.1.1.1", "10.0.0.5", "service class: market; DSCP: 46", "market", 46),
        ("239.2.1.1", "10.0.0.5", "service class: plain; DSCP: 0", "plain", 0),
        ("239.3.1.1", "10.0.0.5", "service class: none; DSCP: 0", None, 0),
        (
            "239.1.1.1",
            "1:3",
            "service class: market; DSCP: its port is trusted, and packets keep theirs",
            "market",
            None,
        ),
    ],
)
def test_a_sender_is_told_its_class_and_code_point(tmp_path, capsys, group, host, told, class_, dscp):
    path = tmp_path / "policy.yaml"
    path.write_text(f"{CLASSES}queues: {{mode: mark, trust: [{{dpid: 1, port: 3}}]}}\n")
    words = ["explain", str(path), "--host", host, "--group", group, "--role", "sender"]
    assert run(*words) == 0
    assert told in capsys.readouterr().out.splitlines()
    assert run(*words, "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["service_class"], answer["dscp"]) == (class_, dscp)


@pytest.mark.parametrize(("role", "queues"), [("receiver", "mark"), ("sender", "off")])
def test_nobody_is_told_a_code_point_who_gets_none(tmp_path, capsys, role, queues):
    path = tmp_path / "policy.yaml"
    path.write_text(f"{CLASSES}queues: {{mode: {queues}}}\n")
    words = ["explain", str(path), "--host", "10.0.0.5", "--group", "239.1.1.1", "--role", role]
    assert run(*words) == 0
    assert "DSCP" not in capsys.readouterr().out
