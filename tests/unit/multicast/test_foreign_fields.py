"""Two versions of records beside each other: what one does not know of the other's is there when it has led."""

from __future__ import annotations

import pytest

from controller.events import JournalLost, PacketReceived
from controller.foreign_fields import ForeignFields, KnownFields
from controller.log import LogEntry, LogEntryKind, MemoryLog
from controller.wire.addresses import format_mac, parse_ip
from controller.wire.encode import encode
from controller.wire.packets import PimHello

from .shadow import POLICY, Shadow

GROUP = parse_ip("239.1.2.3")


def of_later_version(value, depth=0):
    """Return a value as a later version would write it: with a field of its own in each object."""
    if isinstance(value, list):
        return [of_later_version(each, depth) for each in value]
    if not isinstance(value, dict):
        return value
    plain = ("sources",)  # by address
    return {
        **{name: part if name in plain else of_later_version(part, depth + 1) for name, part in value.items()},
        "later": {"depth": depth},
    }


def everything(world):
    """Have a world whose log has an entry of each kind."""
    for name in ("h2", "h6", "h9", "h16"):
        world.join(name, GROUP)
    world.send("h1", GROUP)
    host = world.hosts["h3"]
    world.feed(PacketReceived(*host.place, encode(PimHello(4, host.mac, host.v4, 105.0))))
    world.do("static-member-add", dpid=host.dpid, port_no=host.port_no, group="239.9.9.9")
    world.do("switch-label-add", dpid=host.dpid, key="rack", value="b8")
    world.do("router-port-add", dpid=world.hosts["h4"].dpid, port_no=world.hosts["h4"].port_no, family=4)
    world.do("switch-drain", dpid=max(world.switches))
    world.do("group-pin", group="239.1.2.3")
    world.advance(1.0)


@pytest.mark.parametrize("is_started_anew", [False, True])
def test_fields_of_a_later_version_outlast_the_lead_of_one_that_does_not_know_them(make_world, is_started_anew):
    """In records at each depth, also of those that it changes and where all is written anew."""
    world = make_world("fattree", POLICY)
    everything(world)
    former = world.log.read()
    entries = [LogEntry.of_record(entry.kind, entry.key, of_later_version(entry.value)) for entry in former]
    world.log = MemoryLog(entries)
    if is_started_anew:
        world.restart()
    else:
        shadow = Shadow(world)
        shadow.follow()
        shadow.lead()
    (told,) = (notice for notice in world.notices if notice.kind == "journal-fields-unknown")
    assert dict(told.fields) == {"records": len(entries), "lost": 0}
    assert "heard: later" in told.text
    for dpid in world.switches:
        world.connect(dpid)
    world.connect_all()
    world.settle()
    world.join("h7", GROUP)
    world.feed(JournalLost())
    world.advance(2.0)
    now = {entry.key: entry.value for entry in world.log.read()}
    subjects = {"heard", "tree", "switch", "link", "drain", "pin", "router-port", "static-member", "label", "routers"}
    assert {entry.subject for entry in entries} >= subjects
    for entry in entries:
        assert now[entry.key]["later"] == {"depth": 0}, entry.key
    heard = [value for key, value in now.items() if key.startswith("heard/239.1.2.3/")]
    later = {member["mac"]: member.get("later") for value in heard for member in value["members"]}
    assert later.pop(format_mac(world.hosts["h7"].mac)) is None
    assert set(map(str, later.values())) == {"{'depth': 1}"} and len(later) == 4
    assert [sender["later"] for value in heard for sender in value["senders"]] == [{"depth": 1}]
    assert [notice for notice in world.notices if notice.kind == "journal-faulty"] == []


def test_nothing_that_this_version_writes_is_taken_for_a_later_ones(make_world):
    world = make_world("fattree", POLICY)
    everything(world)
    world.restart()
    shadow = Shadow(world)
    shadow.follow()
    shadow.lead()
    assert [notice for notice in world.notices if notice.kind == "journal-fields-unknown"] == []


KNOWN = {"heard": KnownFields(frozenset(("group", "members", "record", "mac")), frozenset(("member",)))}


def entry(key, value):
    return LogEntry.of_record(LogEntryKind.OBSERVATION, key, value)


def kept(fields, key, value):
    """Return what is written where this version would write a value."""
    (written,) = fields.onto([entry(key, value)])
    return written.value


def test_the_last_value_of_a_key_counts_and_one_that_ends_is_kept_no_more():
    fields = ForeignFields(KNOWN)
    for age in (1, 2):
        value = {"group": "g", "age": age}
        fields.read(entry("heard/g/1", value), value)
    assert kept(fields, "heard/g/1", {"group": "g"}) == {"age": 2, "group": "g"}
    assert kept(fields, "heard/g/2", {"group": "g"}) == {"group": "g"}
    assert fields.onto([entry("heard/g/1", None)]) == [entry("heard/g/1", None)]
    assert kept(fields, "heard/g/1", {"group": "g"}) == {"group": "g"}
    fields.read(entry("heard/g/3", value), value)
    fields.read(entry("heard/g/3", {"group": "g"}), {"group": "g"})
    assert fields.told() == []


def test_what_is_known_is_this_versions_and_parts_that_are_no_more_stay_away():
    fields = ForeignFields(KNOWN)
    members = [{"record": "member", "mac": mac, "later": mac} for mac in ("a", "b")]
    value = {"group": "g", "members": [*members, {"record": "flow", "mac": "a"}, 7]}
    fields.read(entry("heard/g/1", value), value)
    own = [{"record": "member", "mac": mac} for mac in ("b", "c")]
    assert kept(fields, "heard/g/1", {"group": "h", "members": own}) == {
        "group": "h",
        "members": [{**own[0], "later": "b"}, own[1], {"record": "flow", "mac": "a"}],
    }


def test_values_of_other_subjects_and_odd_ones_are_let_be():
    fields = ForeignFields(KNOWN)
    for value in ({"later": 1}, {}, {"members": {"later": 2}}, {"members": None}):
        fields.read(entry("slice/1", value), value)
    assert fields.told() == []


@pytest.mark.parametrize("name", ["later", "members"])
def test_what_is_nested_too_deep_is_told_and_not_kept(name):
    fields = ForeignFields(KNOWN)
    value = {"later": 1}
    for _ in range(400):
        value = {"group": "g", name: value}
    fields.read(entry("heard/g/1", value), value)
    assert [dict(told.fields) for told in fields.told()] == [{"records": 1, "lost": 1}] * (name == "later")
    assert kept(fields, "heard/g/1", {"group": "g"}) == {"group": "g"}


def test_what_is_too_much_is_told_and_not_kept():
    fields = ForeignFields(KNOWN, bound_bytes=1000)
    for number in range(3):
        value = {"group": "g", "later": "x" * 400}
        fields.read(entry(f"heard/g/{number}", value), value)
    (told,) = fields.told()
    assert dict(told.fields) == {"records": 3, "lost": 1}
    assert "(heard: later)" in told.text and "Those of 1 entries are lost" in told.text
    assert kept(fields, "heard/g/2", {"group": "g"}) == {"group": "g"}
    fields.read(entry("heard/g/0", None), None)
    fields.read(entry("heard/g/2", value), value)
    assert dict(fields.told()[0].fields) == {"records": 2, "lost": 0}
