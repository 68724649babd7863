"""FRR's configuration: who is a router, how hosts are queried, what boundaries refuse, and each line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.admission import Admission, Host, Role
from controller.config.terms import SwitchPort
from controller.migration.frr import read_frr
from controller.migration.report import BadConfiguration, InputFile, Outcome
from controller.wire.addresses import parse_ip
from imported_policy import file_of

MAC = bytes.fromhex("0200000000aa")


@pytest.fixture
def router(imported):
    return imported(read_frr([file_of("router.conf")], {}))


def of(text, places=None):
    return read_frr([InputFile("frr.conf", text)], places or {})


def may_receive(policy, ip, group):
    return Admission(policy).decide(Host(MAC, parse_ip(ip), 1, 1), parse_ip(group), Role.RECEIVER).admit


def may_route(policy, ip, dpid=1, port=1):
    return Admission(policy).decide_router(Host(MAC, parse_ip(ip), dpid, port), 4).decision.admit


def test_the_router_is_admitted_by_its_addresses(router):
    assert may_route(router.policy, "10.0.110.1")
    assert may_route(router.policy, "10.0.120.1")
    assert may_route(router.policy, "2001:db8:110::1")
    assert not may_route(router.policy, "10.0.110.2")
    assert not may_route(router.policy, "192.0.2.1"), "a loopback leads to no port of a fabric"


def test_a_port_that_is_said_names_the_router_in_place_of_its_addresses(imported):
    found = imported(read_frr([file_of("router.conf")], {"eth0": SwitchPort(0x1, 48)}))
    assert may_route(found.policy, "10.9.9.9", 1, 48)
    assert not may_route(found.policy, "10.0.110.1", 1, 7)
    assert may_route(found.policy, "10.0.120.1", 1, 7), "nothing says where eth1 is"


def test_hosts_are_queried_as_the_router_does(router):
    querier = router.policy.multicast.querier
    assert (querier.query_interval_s, querier.response_interval_s) == (60, 5)
    assert (querier.last_member_interval_s, querier.last_member_count) == (0.5, 3)
    assert (querier.igmp_version, querier.mld_version) == (2, 1)
    assert router.policy.limits.groups_per_port == 40
    assert router.policy.multicast.router_ports.pim_join_interval_s == 30


@pytest.mark.parametrize(
    ("ip", "group", "admitted"),
    [
        ("10.0.110.9", "239.120.1.1", False),
        ("10.0.111.9", "239.120.1.1", False),  # the second prefix of the interface
        ("10.0.110.9", "239.1.1.1", True),
        ("10.0.110.9", "239.200.1.1", True),  # an entry that matches no single group decides nothing
        ("10.0.110.9", "238.1.1.1", False),  # what no entry is about
        ("10.0.120.9", "239.120.1.1", True),  # a boundary whose prefix-list is not there
        ("2001:db8:110::9", "ff3e::1", True),
        ("2001:db8:110::9", "ff0e::1", False),
    ],
)
def test_boundaries_refuse_what_they_refused(router, ip, group, admitted):
    assert may_receive(router.policy, ip, group) is admitted


@pytest.mark.parametrize(
    ("line", "word", "said"),
    [
        ("hostname edge-1", "idle", "the router itself"),
        ("ip prefix-list cameras description what desks may not join", "idle", "description"),
        ("ip prefix-list cameras seq 5 deny 239.120.0.0/16 le 32", "taken", "refuses receivers of 239.120.0.0/16"),
        ("ip prefix-list cameras seq 10 permit 224.0.0.0/24", "taken", "link scope"),
        ("ip prefix-list cameras seq 15 permit 239.0.0.0/8", "changed", "without `le 32`"),
        ("ip prefix-list cameras seq 20 permit 10.0.0.0/8 le 32", "taken", "no group"),
        ("ip prefix-list cameras seq 25 deny 239.128.0.0/9 le 24", "changed", "no rule comes of it"),
        ("ip prefix-list unused seq 5 permit any", "idle", "no boundary"),
        ("ip prefix-list ssm-range seq 5 permit 232.1.0.0/16", "impossible", "232.0.0.0/8"),
        ("interface eth0 vrf desks", "changed", "no VRF"),
        ("ip igmp query-interval 60", "taken", "query_interval_s: 60"),
        ("ip igmp query-interval 125", "changed", "query_interval_s: 60"),
        ("ip igmp query-max-response-time 50", "taken", "response_interval_s: 5"),
        ("ip igmp max-groups 40", "changed", "limits.groups_per_port: 40"),
        ("ip igmp join 239.1.1.1 10.0.120.7", "taken", "every group"),
        ("ip igmp static-group 239.1.1.2", "changed", "where they join it"),
        ("ip igmp route-map desks", "impossible", "role receiver"),
        ("ip igmp watermark-warn 1000", "impossible", "warning"),
        ("ip multicast boundary DENY_ACL", "impossible", "prefix-list"),
        ("ip multicast boundary oil not-there", "taken", "nothing is refused"),
        ("ip pim drpriority 100", "idle", "stays there"),
        ("ip mroute eth0 239.9.9.9", "idle", "stays there"),
        ("network 10.0.0.0/8 area 0", "idle", "unicast routing"),
        ("rp 192.0.2.1 239.0.0.0/8", "idle", "rendezvous"),
        ("join-prune-interval 30", "taken", "pim_join_interval_s: 30"),
        ("ssm prefix-list ssm-range", "impossible", "232.0.0.0/8"),
        ("end", "idle", "stays there"),
    ],
)
def test_a_line_is_reported(router, line, word, said):
    assert router.word(line) == word
    assert said in router.said(line)


def test_every_line_is_reported_once(router):
    assert [line.text for line in router.lines] == file_of("router.conf").text.splitlines()
    assert not [line for line in router.lines if "could not be told" in line.parts[0].what]


def test_an_interface_that_nothing_tells_the_place_of_is_impossible(router, imported):
    assert "--at eth2=DPID:PORT" in next(line for line in router.lines if "eth2" in str(line.parts)).parts[0].todo
    found = imported(read_frr([file_of("router.conf")], {"eth2": SwitchPort(2, 3)}))
    assert may_route(found.policy, "10.9.9.9", 2, 3)


def test_the_source_specific_range_itself_is_taken(imported):
    text = "ip prefix-list s permit 232.0.0.0/8 le 32\nrouter pim\n ssm prefix-list s\n"
    assert [line.outcome.word for line in imported(of(text)).lines] == ["taken", "idle", "taken"]


def test_lines_without_indentation_are_an_interface_s_where_they_can_be_no_other_s(imported):
    found = imported(of("interface eth0\nip address 10.0.0.1/24\nip igmp\nip pim\n"))
    assert may_route(found.policy, "10.0.0.1")


def test_a_response_time_is_below_the_interval(imported):
    querier = imported(
        of("interface e\n ip address 10.0.0.1/24\n ip igmp\n ip igmp query-interval 8\n")
    ).policy.multicast.querier
    assert (querier.query_interval_s, querier.response_interval_s) == (8, 4)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("interface e\n ip address 10.0.0.256/24\n", 2, "no address"),
        ("interface e\n ip address 10.0.0.1/33\n", 2, "no address"),
        ("interface e\n ip igmp query-interval often\n", 2, "no number"),
        ("ip prefix-list a permit 10.0.0.0\n", 1, "no prefix"),
        ("ip prefix-list a seq 5 allow 10.0.0.0/8\n", 1, "permit|deny"),
        ("ip prefix-list a permit 10.0.0.0/8 le x\n", 1, "invalid literal"),
        ("router pim\n join-prune-interval\n", 2, "no number"),
    ],
)
def test_what_frr_would_refuse_is_a_fault_with_its_line(text, line, message):
    with pytest.raises(BadConfiguration) as refused:
        of(text)
    assert [fault for fault in refused.value.faults if fault.line == line and message in fault.message], refused.value


LINES = st.lists(
    st.sampled_from([line for line in file_of("router.conf").text.splitlines() if line.strip()])
    | st.text(alphabet="ipgm 239./-!#\t", max_size=20),
    max_size=30,
)


@given(LINES)
def test_any_lines_are_refused_with_their_numbers_or_reported_one_by_one(lines):
    text = "\n".join(lines) + "\n"
    try:
        _, report = of(text)
    except BadConfiguration as refused:
        assert all(1 <= fault.line <= len(lines) for fault in refused.faults)
    else:
        assert [line.text for line in report.lines()] == text.splitlines()


@pytest.mark.parametrize("text", ["root:x:0:0:root:/root:/bin/bash\n", "table inet filter {\n  chain input\n}\n"])
def test_what_is_no_configuration_of_frr_is_not_passed_over(imported, text):
    found = imported(read_frr([InputFile("other.conf", text)], {}))
    assert {line.parts[0].outcome for line in found.lines} == {Outcome.IMPOSSIBLE}
