"""Event files in both formats, and what is said of a bad line."""

from __future__ import annotations

import json

import pytest

from controller.simulation.dynamics import EventKind, GroupEvent
from controller.simulation.dynamics_file import EventFileError, read_events
from topology.generators import make
from topology.graph import NodeKind

GRAPH = make("avalanche24")
HOST, OTHER = GRAPH.hosts()[:2]
CORE = GRAPH.nodes(NodeKind.CORE)[0]
AGGREGATION = GRAPH.neighbours(CORE)[0]
TOR = GRAPH.nodes(NodeKind.TOR)[0]
HEADING = "time_s,event,group,member,u,v,rate_bps"


def read(*lines):
    return read_events([line + "\n" for line in lines], "events.csv", GRAPH)


def test_csv_and_json_lines_say_the_same():
    events = [
        GroupEvent(0.5, EventKind.JOIN, "g1", HOST, rate_bps=2e6),
        GroupEvent(1.0, EventKind.LINK_DOWN, u=CORE, v=AGGREGATION),
        GroupEvent(2.0, EventKind.LEAVE, "g1", HOST),
        GroupEvent(3.0, EventKind.SWITCH_UP, u=CORE),
    ]
    assert (
        read(
            HEADING,
            f"0.5,join,g1,{HOST},,,2e6",
            f"2,leave,g1,{HOST},,,",
            f"1,link_down,,,{CORE},{AGGREGATION},",
            "",
            f"3,switch_up,,,{CORE},,",
        )
        == events
    )
    rows = [
        {"time_s": 2, "event": "leave", "group": "g1", "member": HOST},
        {"time_s": "0.5", "event": "join", "group": "g1", "member": HOST, "rate_bps": 2e6, "u": None},
        {"time_s": 1, "event": "link_down", "u": CORE, "v": AGGREGATION},
        {"time_s": 3, "event": "switch_up", "u": CORE},
    ]
    assert read(*map(json.dumps, rows)) == events


def test_events_of_one_time_keep_the_order_of_the_file():
    events = read("event,time_s,group,member", f"join,1,b,{HOST}", f"join,1,a,{HOST}", f"join,0,c,{HOST}")
    assert [event.group for event in events] == ["c", "b", "a"]


GOOD = f"1,join,g,{HOST},,,"


@pytest.mark.parametrize(
    ("line", "field", "message"),
    [
        (f"soon,join,g,{HOST},,,", "time_s", "'soon' is no number"),
        (f",join,g,{HOST},,,", "time_s", "missing"),
        (f"-1,join,g,{HOST},,,", "time_s", "-1 is not a number from 0"),
        (f"nan,join,g,{HOST},,,", "time_s", "nan is not a number"),
        (f"1,jump,g,{HOST},,,", "event", "'jump' is none of join, leave, link_down"),
        (f"1,join,,{HOST},,,", "group", "missing"),
        ("1,join,g,,,,", "member", "missing"),
        ("1,join,g,nobody,,,", "member", "'nobody' is not in the topology"),
        (f"1,join,g,{HOST},,,-5", "rate_bps", "-5 is not a number from 0"),
        (f"1,join,g,{HOST},,,inf", "rate_bps", "inf is not a number"),
        (f"1,link_down,,,{CORE},,", "v", "missing"),
        (f"1,link_up,,,{CORE},nowhere,", "v", "'nowhere' is not in the topology"),
        (f"1,link_up,,,{CORE},{TOR},", "v", "no link joins"),
        (f"1,link_up,,,{HOST},{TOR},", "u", "is a host"),
        (f"1,switch_down,,,{HOST},,", "u", "is a host"),
        (f"1,join,g,{HOST},,,,,,", "", "10 cells under 7 columns"),
        (f'1,join,"g,{HOST}', "", "no CSV"),
    ],
)
def test_a_bad_line_is_named_with_its_field(line, field, message):
    with pytest.raises(EventFileError) as caught:
        read(HEADING, GOOD, "", GOOD, line, GOOD)
    assert (caught.value.line, caught.value.field) == (5, field)
    assert message in str(caught.value)
    assert str(caught.value).startswith("events.csv:5: " + (f"{field}: " if field else ""))


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("{", ""),
        ("[1]", ""),
        ('{"time_s": true, "event": "join"}', "time_s"),
        ('{"time_s": 1, "event": "join", "who": 1}', "who"),
        ('{"time_s": 1, "event": ["join"]}', "event"),
        ('{"time_s": 1' + "0" * 400 + ', "event": "join"}', "time_s"),
    ],
)
def test_a_bad_json_line_is_named(line, field):
    good = json.dumps({"time_s": 1, "event": "join", "group": "g", "member": HOST})
    with pytest.raises(EventFileError) as caught:
        read(good, line)
    assert (caught.value.line, caught.value.field) == (2, field)


@pytest.mark.parametrize(
    ("lines", "field"),
    [
        (["time_s,event,colour"], "colour"),
        (["time_s,event,event"], "event"),
        (["event,group,member"], "time_s"),
        ([], ""),
        (["", " "], ""),
    ],
)
def test_a_bad_heading_or_an_empty_file_is_named(lines, field):
    with pytest.raises(EventFileError) as caught:
        read(*lines)
    assert (caught.value.line, caught.value.field) == (1, field)


def test_a_host_without_a_switch_cannot_join():
    graph = make("avalanche24")
    graph.remove_link(HOST, graph.neighbours(HOST)[0])
    with pytest.raises(EventFileError, match=r"member: .* has no link to a switch"):
        read_events([HEADING, GOOD], "f", graph)
