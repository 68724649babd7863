"""Linux bridges, by files of ifupdown and by what `bridge` and `ip` tell: VLANs, groups, routers, and each line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.config.terms import SwitchPort
from controller.migration.bridge import read_bridge
from controller.migration.places import parse_places
from controller.migration.report import BadConfiguration, InputFile
from controller.wire.addresses import parse_ip, parse_name
from imported_policy import file_of


def read(names, at=()):
    return read_bridge([file_of(name) for name in names], parse_places(at))


def of(text, at=()):
    return read_bridge([InputFile("interfaces", text)], parse_places(at))


def vlans_at(policy, port, dpid=1):
    found = policy.vlans.of(dpid, port, "tor")
    return found.untagged, sorted(set(found.vlans()) - {found.untagged})


@pytest.fixture
def switch(imported):
    return imported(read(["interfaces-ifupdown2"], ["bridge=1", "uplink=1:48"]))


def test_ports_are_in_the_vlans_that_the_bridge_had_them_in(switch):
    policy = switch.policy
    assert vlans_at(policy, 1) == (120, [])
    assert vlans_at(policy, 2) == (110, [120, 130, 131, 132])
    assert vlans_at(policy, 3) == (None, [110])
    assert vlans_at(policy, 4) == (1, [110, 120, 130])
    assert vlans_at(policy, 48) == (1, [110, 120, 130])
    assert dict(policy.switches[0].ports)[48] == "uplink"


def test_groups_routers_and_timers_are_the_bridge_s(switch):
    multicast = switch.policy.multicast
    assert [(member.group, member.port) for member in switch.policy.static_members] == [
        (parse_name("239.120.1.1@120"), SwitchPort(1, 1)),
    ]
    assert multicast.router_ports.static == {SwitchPort(1, 48)}
    assert multicast.fast_leave == {SwitchPort(1, 2)}
    querier = multicast.querier
    assert (querier.query_interval_s, querier.response_interval_s, querier.last_member_interval_s) == (60, 5, 1)
    assert querier.address_v4 == parse_ip("10.0.110.254")
    assert switch.policy.limits.groups == 8192
    assert switch.policy.unicast.host_timeout_s == 900


@pytest.mark.parametrize(
    ("line", "word", "said"),
    [
        ("source /etc/network/interfaces.d/*", "impossible", "give this command"),
        ("mtu 9216", "idle", "stays there"),
        ("bridge-access 120", "changed", "taken to be port 1"),
        ("130-132", "taken", "with line"),
        ("bridge-ports glob swp1-5 uplink", "changed", "uplink uplink is port 48"),
        ("bridge-stp on", "idle", "spanning tree"),
        ("bridge-mcquerier 0", "changed", "queries nevertheless"),
        ("bridge-hashmax 8192", "changed", "limits.groups: 8192"),
        ("bridge-portmcrouter uplink=2 swp4=0 swp5=1", "changed", "role router"),
        ("bridge-arp-nd-suppress on", "impossible", "no counterpart"),
        ("post-up bridge mdb add dev bridge port swp1 grp 239.120.1.1 permanent vid 120", "taken", "a static member"),
        (
            "post-up bridge mdb add dev bridge port swp1 grp 232.1.1.1 permanent vid 120",
            "impossible",
            "has no source",
        ),
        ("post-up ip link set dev bridge promisc on", "impossible", "commands"),
        ("bridge-igmp-querier-src 10.0.110.254", "taken", "address_v4"),
        ("bridge-igmp-querier-src 10.0.120.254", "changed", "one for all VLANs"),
    ],
)
def test_a_line_is_reported(switch, line, word, said):
    assert switch.word(line) == word
    assert said in switch.said(line)


@pytest.mark.parametrize(
    "names", [["interfaces-ifupdown2"], ["interfaces-ifupdown"], ["link.json", "vlan.json", "mdb.json"]]
)
def test_every_line_is_reported_once(imported, names):
    found = imported(read(names, ["bridge=1", "br-office=2", "br0=3"]))
    assert [line.text for line in found.lines] == [text for name in names for text in file_of(name).text.splitlines()]
    assert not [line for line in found.lines if "could not be told" in line.parts[0].what]


def test_ports_whose_place_nothing_says_are_impossible_and_left_out(imported):
    found = imported(read(["interfaces-ifupdown2"]))
    assert found.policy.vlans.of(1, 1, "tor").untagged == 0
    assert found.word("bridge-access 120") == "impossible"
    assert "--at swp1=DPID:PORT" in found.said("bridge-access 120")


def test_bridges_of_one_tag_are_its_vlan_and_others_stay_apart(imported):
    found = imported(read(["interfaces-ifupdown"], ["eth0=1:1", "eth1=1:2", "eth2=1:3", "eth3=1:4"]))
    assert vlans_at(found.policy, 1) == (100, [])
    assert vlans_at(found.policy, 2) == (None, [100, 200])
    assert vlans_at(found.policy, 3)[0] == vlans_at(found.policy, 4)[0] == 4000
    assert 100 in vlans_at(found.policy, 3)[1]
    assert found.word("bridge_ports eth1.200 eth2.300") == "impossible"
    assert found.word("bridge_mcsnoop 0") == "changed"
    assert found.word("bridge_ports none") == "idle"


def test_a_single_bridge_without_vlans_needs_none(imported):
    found = imported(of("iface br0\n bridge_ports eth0 eth1\n", ["br0=1"]))
    assert vlans_at(found.policy, 1) == (0, [])
    assert "vlans" not in found.text


def test_what_a_bridge_tells_of_itself_is_its_configuration(imported):
    found = imported(read(["vlan.json", "link.json", "mdb.json"], ["p1=1:1", "p2=1:2"]))
    assert vlans_at(found.policy, 1) == (10, [])
    assert vlans_at(found.policy, 2) == (1, [*range(20, 31)])
    assert [(m.group, m.port) for m in found.policy.static_members] == [
        (parse_name("239.1.1.1@10"), SwitchPort(1, 1)),
    ]
    assert found.policy.multicast.router_ports.static == {SwitchPort(1, 2)}
    assert found.policy.multicast.fast_leave == {SwitchPort(1, 1)}
    querier = found.policy.multicast.querier
    assert (querier.query_interval_s, querier.response_interval_s, querier.igmp_version) == (60, 5, 2)
    assert found.policy.unicast.host_timeout_s == 300


def test_things_in_one_line_are_told_apart(imported):
    found = imported(read(["vlan.json", "link.json"], ["p1=1:1", "p2=1:2"]))
    (line,) = [line for line in found.lines if line.file == "vlan.json"]
    told = {part.field: part.outcome.word for part in line.parts if part.field}
    assert told["p2, VLAN 20-30"] == "taken"
    assert told["p2, VLAN 40"] == "impossible"
    assert told["br0"] == "idle"
    assert line.outcome.word == "impossible"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 0, "empty"),
        ("[1, 2]", 1, "no list of objects"),
        ('[{"ifname": "p1", "vlans": [{"vlan": 4095}]}]', 1, "1 to 4094"),
        ('[{"ifname": "p1",\n "vlans": [{"vlan" 1}]}]', 2, "JSON syntax"),
        ('[{"x": 1}]', 1, "neither VLANs"),
        ('[{"mdb": [{"grp": "10.0.0.1", "port": "p", "state": "permanent"}]}]', 1, "not within the multicast"),
        ("iface br0\n bridge-ports swp1\niface swp1\n bridge-access 5000\n", 4, "1 to 4094"),
        ("iface br0\n bridge-ports swp1\n bridge-vids ten\n", 3, "neither a VLAN"),
        ("iface br0\n bridge-ports swp1\n bridge-mcqi soon\n", 3, "no number"),
        ("iface br0\n bridge-ports swp1\n bridge-igmp-querier-src me\n", 3, "no address"),
        ("bridge-ports swp1\n", 1, "stands in no stanza"),
        ("iface eth0\n mtu 1500\n", 0, "no bridge"),
    ],
)
def test_what_cannot_be_a_bridge_s_is_a_fault_with_its_line(text, line, message):
    with pytest.raises(BadConfiguration) as refused:
        of(text)
    assert [fault for fault in refused.value.faults if fault.line == line and message in fault.message], refused.value


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["eth0"], "expected NAME=DPID:PORT"),
        (["eth0=x:1"], "eth0=x:1"),
        (["eth0=1:0"], "a port is a number"),
        (["eth0=1:1", "eth1=1:1"], "'eth0' is at port 1:1 already"),
        (["eth0=1:1", "eth0=1:2"], "stands twice"),
    ],
)
def test_places_that_say_nothing_are_refused(texts, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        parse_places(texts)


LINES = st.lists(
    st.sampled_from(
        [line for name in ("interfaces-ifupdown2", "interfaces-ifupdown") for line in file_of(name).text.splitlines()]
    ),
    max_size=40,
)


@given(LINES)
def test_any_lines_are_refused_with_their_numbers_or_reported_one_by_one(lines):
    text = "\n".join(lines) + "\n"
    try:
        _, report = of(text, ["bridge=1"])
    except BadConfiguration as refused:
        assert all(0 <= fault.line <= len(lines) for fault in refused.faults)
    else:
        assert [line.text for line in report.lines()] == text.splitlines()
