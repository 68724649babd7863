"""`vsrt policy propose` from an audit log to a file that is checked and decides."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from apps.cli.main import main
from apps.line_files import append_lines
from controller.admission import Admission, Host, Role
from controller.config import load_policy
from controller.wire.addresses import parse_ip, parse_mac

PROPOSED = Path(__file__).with_name("proposed.yaml")


def line(
    number: int, group: str, role: str = "receiver", verdict: str = "allow", rule: str = "default", **also: Any
) -> dict[str, Any]:
    host = {"mac": f"02:00:00:00:00:{number:02x}", "ip": f"10.0.{number // 100}.{number % 100}"}
    host |= {"dpid": 1 + number // 100, "port_no": number % 100}
    told = {"time": "2026-11-20T10:00:00.000Z", "verdict": verdict, "rule": rule, "role": role, "group": group}
    return {**told, "source": None, "host": {**host, **also.pop("host", {})}, "reason": "", **also}


def week() -> list[dict[str, Any]]:
    """Two tenants of ten hosts, a group for all, a VLAN, a feed for each, a stray, and somebody refused."""
    lines = []
    for number in range(10):
        for group in (0, 1, 2):
            if (number + group) % 3:
                lines.append(line(1 + number, f"239.1.0.{group}", time=f"2026-11-2{group}T09:00:00.000Z"))
                lines.append(line(101 + number, f"239.2.0.{group}"))
        lines += [line(1 + number, "239.9.9.9"), line(101 + number, "239.9.9.9"), line(1 + number, "239.3.0.1@20")]
    lines += [line(1, f"239.1.0.{group}", "sender") for group in range(3)]
    lines += [line(101, f"239.2.0.{group}", "sender") for group in range(3)]
    lines += [line(77, f"239.{which}.0.{group}") for which in (1, 2) for group in range(3)]
    lines += [line(77, f"239.7.0.{group}") for group in range(2)]
    lines += [line(140 + number, f"239.7.0.{group}") for number in range(10) for group in range(4)]
    lines.append(line(3, "239.2.0.0", verdict="deny", rule="no-feed", time="2026-11-25T10:00:00.000Z"))
    return lines


def written(folder: Path, lines: list[dict[str, Any]], name: str = "audit.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(one, separators=(",", ":")) + "\n" for one in lines))
    return path


def proposed(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert main(["policy", "propose", *map(str, words)]) == 0
    return capsys.readouterr().out


def admits(text: str, number: int, group: str, role: Role = Role.RECEIVER, vlan: int = 0) -> bool:
    policy = load_policy(text.encode(), "proposed")
    assert not policy.warnings
    host = Host(parse_mac(f"02:00:00:00:00:{number:02x}"), parse_ip(f"10.0.{number // 100}.{number % 100}"), 9, 9)
    return Admission(policy).decide(host, parse_ip(group), role, None, vlan).admit


def test_the_file_is_the_one_that_people_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert proposed(capsys, "--audit", written(tmp_path, week())) == PROPOSED.read_text()


def test_the_order_of_lines_and_files_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = week()
    one = written(tmp_path, lines[::-1][:40], "one.jsonl")
    other = tmp_path / "other.jsonl.gz"
    other.write_bytes(gzip.compress(written(tmp_path, lines[::-1][40:]).read_bytes()))
    assert proposed(capsys, "--audit", one, other) == PROPOSED.read_text()


def test_it_admits_what_was_seen_and_the_tenant_s_own_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = proposed(capsys, "--audit", written(tmp_path, week()))
    assert admits(text, 1, "239.1.0.1") and admits(text, 1, "239.1.0.0")
    assert admits(text, 1, "239.3.0.1", vlan=20) and not admits(text, 1, "239.3.0.1")
    assert not admits(text, 1, "239.2.0.1") and not admits(text, 101, "239.1.0.1")
    assert admits(text, 101, "239.9.9.9") and admits(text, 1, "239.9.9.9")
    assert admits(text, 1, "239.1.0.0", Role.SENDER)
    assert not admits(text, 2, "239.1.0.0", Role.SENDER)


def test_every_way_to_write_hosts_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, week())
    assert '"02:00:00:00:00:01"' in proposed(capsys, "--audit", path, "--by", "mac")
    assert "{dpid: 1, port: 1}" in proposed(capsys, "--audit", path, "--by", "port")


def test_ipv6_hosts_are_known_by_their_mac_addresses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line(number, "ff0e::1", host={"ip": f"fe80::{number}"}) for number in range(1, 6)]
    text = proposed(capsys, "--audit", written(tmp_path, lines))
    assert '["02:00:00:00:00:01"' in text
    assert 'groups: ["ff0e::1"]' in text


def test_what_was_refused_in_the_end_is_not_admitted_but_want_of_room_says_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    later = "2026-11-26T10:00:00.000Z"
    lines = [line(number, f"239.1.0.{group}") for number in range(1, 6) for group in range(2)]
    lines += [line(number, "239.1.0.1", verdict="deny", rule="closed", time=later) for number in range(1, 6)]
    lines += [line(number, "239.1.0.0", verdict="deny", rule="limits.groups", time=later) for number in range(1, 6)]
    text = proposed(capsys, "--audit", written(tmp_path, lines))
    assert admits(text, 1, "239.1.0.0") and not admits(text, 1, "239.1.0.1")
    assert "5 pairs of host and group, refused in the end" in text


def test_who_was_admitted_for_one_source_is_a_receiver_though_another_was_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    later = {"verdict": "deny", "rule": "closed", "time": "2026-11-26T10:00:00.000Z"}
    lines = [line(number, "232.1.0.1", source="10.0.0.1") for number in range(1, 6)]
    lines += [line(number, "232.1.0.1", source="10.0.0.2", **later) for number in range(1, 7)]
    lines += [line(1, "232.1.0.2", "sender", "deny", "multicast.off", time=later["time"])]
    text = proposed(capsys, "--audit", written(tmp_path, lines))
    assert admits(text, 1, "232.1.0.1")
    assert "# 1 pair of host and group, refused in the end" in text
    assert "5 hosts on 1 day; 5 pairs of host and group seen, none admitted unseen" in text


def test_an_empty_log_is_a_policy_that_admits_nobody(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = proposed(capsys, "--audit", written(tmp_path, []))
    assert not load_policy(text.encode(), "proposed").rules


def test_a_file_that_is_there_is_left_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, into = written(tmp_path, week()), tmp_path / "policy.yaml"
    assert main(["policy", "propose", "--audit", str(path), "-o", str(into), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["policy"] == into.read_text() == PROPOSED.read_text()
    assert [tenant["seen_hosts"] for tenant in found["tenants"]] == [10, 10, 10]
    assert main(["policy", "propose", "--audit", str(path), "-o", str(into)]) == 2
    assert "is there already" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["::ffff:10.0.0.9", "255.255.255.255", "239.1.1.1", "ff02::1"])
@pytest.mark.parametrize("role", ["receiver", "sender"])
def test_who_gives_an_address_that_no_host_has_is_known_by_its_mac_address(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], address: str, role: str
) -> None:
    text = proposed(capsys, "--audit", written(tmp_path, [line(9, "239.1.0.1", role, host={"ip": address})]))
    assert '"02:00:00:00:00:09"' in text
    assert address not in text
    assert admits(text, 9, "239.1.0.1", Role(role))


@pytest.mark.parametrize("mac", ["00:00:00:00:00:00", "01:00:5e:01:00:01", "ff:ff:ff:ff:ff:ff"])
def test_a_mac_address_that_no_host_has_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mac: str
) -> None:
    path = written(tmp_path, [*week(), line(9, "239.1.0.1", host={"mac": mac})])
    assert main(["policy", "propose", "--audit", str(path), "--by", "mac"]) == 0
    told = capsys.readouterr()
    assert mac not in told.out
    assert "1 decisions about hosts with a MAC address that no host has are left out" in told.err


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        ({"verdict": "maybe"}, ":2: verdict: expected allow or deny, found 'maybe'"),
        ({"role": "king"}, ":2: role: expected one of"),
        ({"group": "10.0.0.1"}, ":2: group: no address"),
        ({"group": "239.1.0.1@5000"}, ":2: group: no address"),
        ({"host": {"mac": "02:00"}}, ":2: host.mac: no address"),
        ({"host": {"ip": "10.0.0.300"}}, ":2: host.ip: no address"),
        ({"host": {"dpid": "x"}}, ":2: host: dpid and port_no are no numbers"),
        ({"host": {"port_no": float("inf")}}, ":2: host: dpid and port_no are no numbers"),
        ({"time": "yesterday"}, ":2: time: expected ISO 8601"),
        ({"time": "2026-11-20T10:00:   nanZ"}, ":2: time: expected ISO 8601"),
        ({"time": "0001-01-01T00:00:00+01:00"}, ":2: time: 0001-01-01T00:00:00+01:00 is out of the range"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(
    tmp_path: Path, bad: dict[str, Any], fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, [line(1, "239.1.0.1"), {**line(2, "239.1.0.1"), **_merged(bad)}])
    assert main(["policy", "propose", "--audit", str(path)]) == 2
    assert f"{path}{fault}" in capsys.readouterr().err


def _merged(bad: dict[str, Any]) -> dict[str, Any]:
    return {"host": {**line(2, "239.1.0.1")["host"], **bad["host"]}} if "host" in bad else bad


def test_lines_that_a_crash_cut_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, whole = written(tmp_path, week()), written(tmp_path, week()).read_bytes()
    first, rest = whole.split(b"\n", 1)
    path.write_bytes(first[:50])
    append_lines(path, first + b"\n")
    append_lines(path, rest + first[:9])
    assert main(["policy", "propose", "--audit", str(path)]) == 0
    told = capsys.readouterr()
    assert told.out == PROPOSED.read_text()
    assert f"{path}:1: the line is no JSON object, and is left out, as are 1 more\n" in told.err


@pytest.mark.parametrize("text", ["time verdict\n", "[]\n"])
def test_what_is_no_audit_log_is_an_error(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, week())
    path.write_text(text + path.read_text())
    assert main(["policy", "propose", "--audit", str(path)]) == 2
    assert f"{path}:1: the line is no JSON object" in capsys.readouterr().err


def test_routers_are_left_to_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, [*week(), line(9, "239.1.0.1", "router", rule="uplink")])
    assert main(["policy", "propose", "--audit", str(path)]) == 0
    told = capsys.readouterr()
    assert told.out == PROPOSED.read_text()
    assert "1 decisions about routers are left out" in told.err


def test_other_sections_of_the_policy_in_force_are_taken_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    in_force = tmp_path / "policy.yaml"
    in_force.write_text(
        "# what we run\nversion: 1\n"
        "rules:\n  - {name: x, groups: [239.1.1.1], role: any, hosts: [any], action: deny}\n"
        "\n# our VLANs\nvlans:\n  # named once\n  names: {20: video}\ndefault: allow\nlimits: {groups_per_port: 7}\n"
    )
    text = proposed(capsys, "--audit", written(tmp_path, week()), "--policy", in_force)
    assert "# our VLANs\nvlans:\n  # named once\n  names: {20: video}\nlimits: {groups_per_port: 7}\n" in text
    policy = load_policy(text.encode(), "proposed")
    assert (policy.limits.groups_per_port, policy.default_allow) == (7, False)
    assert "x" not in [rule.name for rule in policy.rules]


def test_a_policy_in_force_that_is_no_list_of_sections_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    in_force = tmp_path / "policy.yaml"
    in_force.write_text("{version: 1, default: allow}\n")
    words = ["policy", "propose", "--audit", str(written(tmp_path, week())), "--policy", str(in_force)]
    assert main(words) == 2
    assert f"{in_force}: the line" in capsys.readouterr().err
