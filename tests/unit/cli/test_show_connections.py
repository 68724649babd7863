"""`vsrt show connections`: which hosts of each tenant receive and send which groups, since when."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from apps.cli.common import InputError
from apps.cli.main import build_parser
from apps.cli.show_connections import CONNECTION_TITLES, connection_rows
from apps.cli.show_selection import DocumentSelection
from apps.tenants.connections import connections
from told_snapshot import policy_section, told

POLICY = """\
version: 1
tenants:
  video: [10.0.0.0/24]
  all: [0.0.0.0/0]
  card: ["fd00::9"]
rules: []
default: allow
"""
CAMERA: dict[str, Any] = {"mac": "02:00:00:00:00:01", "dpid": 3, "port_no": 1}
SCREEN: dict[str, Any] = {"mac": "02:00:00:00:00:02", "dpid": 4, "port_no": 2}
HOSTS = {CAMERA["mac"]: {**CAMERA, "ips": ["10.0.0.9", "fd00::9"]}}
GROUPS: dict[str, Any] = {
    "239.1.1.1": {
        "vlan": None,
        "senders": [
            {**CAMERA, "ip": "10.0.0.9", "admitted": True, "rate_bps": 3000, "since_s": 80.0},
            {**SCREEN, "ip": "10.9.0.2", "admitted": False, "rate_bps": 0, "since_s": 1.0},
        ],
        "members": [{**SCREEN, "ip": "10.9.0.2", "since_s": 90.0}],
        "static_members": [{"dpid": 9, "port_no": 7, "served": True}, {"dpid": 9, "port_no": 8, "served": False}],
    },
    "239.1.1.2": {
        "vlan": None,
        "members": [{**SCREEN, "ip": "10.9.0.2", "since_s": 70.0}],
        "senders": [{**CAMERA, "ip": "10.0.0.8", "admitted": True, "rate_bps": 1000, "since_s": 85.0}],
    },
    "239.1.1.3@20": {"vlan": 20, "members": [{**SCREEN, "ip": None, "since_s": 60.0}]},
}


def snapshot(**sections: Any) -> Any:
    return told({"policy": policy_section(POLICY), "hosts": HOSTS, "groups": GROUPS, **sections})


def found(**sections: Any) -> dict[str, dict[str, Any]]:
    return {document.id: dict(document.fields) for document in connections(snapshot(**sections))}


def test_a_host_is_told_once_for_each_of_its_tenants_and_those_of_none_come_last():
    assert list(found()) == [
        "all/3:1/02:00:00:00:00:01",
        "all/4:2/02:00:00:00:00:02",
        "card/3:1/02:00:00:00:00:01",
        "video/3:1/02:00:00:00:00:01",
        "-/4:2/02:00:00:00:00:02@20",
        "-/9:7/-",
    ]


def test_a_host_has_all_that_it_sends_and_receives_and_since_when():
    seen = found()
    camera, screen = seen["video/3:1/02:00:00:00:00:01"], seen["all/4:2/02:00:00:00:00:02"]
    assert camera["sends"] == [
        {"group": "239.1.1.1", "since_s": 80.0, "rate_bps": 3000},
        {"group": "239.1.1.2", "since_s": 85.0, "rate_bps": 1000},
    ]
    assert (camera["receives"], camera["since_s"], camera["rate_bps"]) == ([], 80.0, 4000)
    assert camera["ips"] == ["10.0.0.9", "10.0.0.8"]
    assert [one["group"] for one in screen["receives"]] == ["239.1.1.1", "239.1.1.2"]
    assert (screen["sends"], screen["since_s"]) == ([], 70.0), "who is refused sends nothing"
    static = seen["-/9:7/-"]
    assert (static["mac"], static["since_s"]) == (None, None)
    assert static["receives"] == [{"group": "239.1.1.1", "since_s": None, "static": True}]


def test_two_addresses_of_a_sender_are_one_connection():
    both = [
        {**CAMERA, "ip": ip, "admitted": True, "rate_bps": 500, "since_s": since_s}
        for ip, since_s in (("10.0.0.9", 80.0), ("10.0.0.8", 60.0))
    ]
    host = found(groups={"239.1.1.1": {"vlan": None, "senders": both}})["video/3:1/02:00:00:00:00:01"]
    assert host["sends"] == [{"group": "239.1.1.1", "since_s": 60.0, "rate_bps": 1000}]


def test_a_row_names_a_few_groups_and_counts_the_others():
    many = {
        f"239.1.1.{n}": {"vlan": None, "members": [{**CAMERA, "ip": None, "since_s": 60.0 + n}]} for n in range(6)
    }
    called: Any = SimpleNamespace(clock=lambda time_s: f"at {time_s}", label=lambda dpid, port: f"{dpid}:{port}")
    (row,) = connection_rows(found(groups=many)["card/3:1/02:00:00:00:00:01"], called)
    assert dict(zip(CONNECTION_TITLES, row, strict=True)) == {
        **{"TENANT": "card", "HOST": "02:00:00:00:00:01", "PORT": "3:1", "VLAN": "-"},
        **{"RECEIVES": "239.1.1.0,239.1.1.1,239.1.1.2,239.1.1.3 and 2 more", "SENDS": "-", "RATE": "-"},
        "SINCE (UTC)": "at 60.0",
    }


def chosen(*words: str) -> list[str]:
    args = build_parser(("show",)).parse_args(["show", "connections", *words])
    return [document.id for document in DocumentSelection(args).items(snapshot())]


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        (["--tenant", "video"], ["video/3:1/02:00:00:00:00:01"]),
        (["--tenant", "all", "--group", "239.1.1.2", "--switch", "4"], ["all/4:2/02:00:00:00:00:02"]),
        (["--group", "239.1.1.3@20"], ["-/4:2/02:00:00:00:00:02@20"]),
        (["--tenant", "all", "--sort", "since_s"], ["all/4:2/02:00:00:00:00:02", "all/3:1/02:00:00:00:00:01"]),
        (["--port", "9:7"], ["-/9:7/-"]),
    ],
)
def test_connections_are_chosen_by_tenant_group_and_place(words: list[str], ids: list[str]):
    assert chosen(*words) == ids


def test_a_tenant_that_the_policy_has_not_is_told_with_those_that_it_has():
    with pytest.raises(InputError, match="--tenant: the policy has no tenant 'vidoe'; there are video, all, card"):
        chosen("--tenant", "vidoe")
