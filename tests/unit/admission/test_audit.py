"""The audit log's lines."""

import json

from hypothesis import given
from hypothesis import strategies as st

from controller.admission import AuditLines, Decision, Host, Role, audit_record
from controller.wire.addresses import parse_ip

HOST = Host(bytes.fromhex("00000000000b"), parse_ip("10.0.0.1"), 0x1F, 3)


def test_a_decision_is_one_json_object():
    record = audit_record(
        Decision(False, "no\nwhere", "because"), HOST, parse_ip("239.1.1.1"), Role.RECEIVER, 1_700_000_000.0625
    )
    line = json.dumps(record)
    assert "\n" not in line
    assert json.loads(line) == {
        "time": "2023-11-14T22:13:20.062Z",
        "verdict": "deny",
        "rule": "no\nwhere",
        "role": "receiver",
        "group": "239.1.1.1",
        "source": None,
        "host": {"mac": "00:00:00:00:00:0b", "ip": "10.0.0.1", "dpid": 31, "port_no": 3},
        "reason": "because",
    }


def test_what_is_not_known_is_null_and_a_source_is_told():
    record = audit_record(
        Decision(True, "r", ""), HOST._replace(ip=None), parse_ip("ff3e::1"), Role.SENDER, 0.0, parse_ip("fd00::1")
    )
    assert record["time"] == "1970-01-01T00:00:00.000Z"
    assert record["verdict"] == "allow"
    assert record["source"] == "fd00::1"
    assert record["host"]["ip"] is None


IPS = st.binary(min_size=4, max_size=4) | st.binary(min_size=16, max_size=16)
HOSTS = st.builds(Host, st.binary(min_size=6, max_size=6), st.none() | IPS, st.integers(0, 99), st.integers(0, 9))
DECISIONS = st.builds(Decision, st.booleans(), st.text(max_size=5), st.text(max_size=5))
MOMENTS = st.integers(0, 4_000_000_000_000).map(lambda eighths: eighths / 1024)


@given(st.lists(st.tuples(DECISIONS, HOSTS, IPS, st.sampled_from(Role), MOMENTS, st.none() | IPS), max_size=8))
def test_lines_say_what_records_say(questions):
    lines = AuditLines()
    for question in questions:
        line = lines.line(*question)
        assert "\n" not in line
        assert json.loads(line) == audit_record(*question)
        assert list(json.loads(line)) == list(audit_record(*question))
