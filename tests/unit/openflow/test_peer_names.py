"""Lists of peers: whom they let in, for which datapath ids, and what is wrong with a list."""

from __future__ import annotations

import pytest

from apps.peer_names import PeerNames

LIST = """\
# switches of the first room

leaf1 id:* = 17
leaf2 id:* = 0x12, 0000000000000013
spine* id:*
switch-{dpid}.example.org
"""


@pytest.mark.parametrize(
    ("name", "dpid", "line"),
    [
        ("leaf1 id:5", 17, None),
        ("leaf1 id:5", 18, "which line 3 of list binds to another datapath id"),
        ("leaf1 id:5", 99, "which line 3 of list binds to another datapath id"),
        ("leaf2 id:5", 18, None),
        ("leaf2 id:5", 19, None),
        ("leaf2 id:5", 17, "which line 4 of list binds to another datapath id"),
        ("spine7 id:5", 99, None),
        ("spine7 id:5", 17, ": line 3 of list binds that datapath id to another name"),
        ("switch-0000a2f1c3d4e5f6.example.org", 0xA2F1C3D4E5F6, None),
        ("switch-0000a2f1c3d4e5f6.example.org", 17, "which line 6 of list binds to another datapath id"),
        ("leaf10 id:5", 99, "whom list does not name"),
    ],
)
def test_a_name_speaks_for_the_datapath_ids_of_its_line_and_nobody_else_for_these(
    name: str, dpid: int, line: str | None
) -> None:
    refusal = PeerNames(LIST, "list").dpid_refusal([name], dpid)
    if line is None:
        assert refusal is None
    else:
        assert refusal is not None and refusal.endswith(line)
        assert refusal.startswith(f"it says that it is {dpid:016x}, and its certificate is for {name}")


@pytest.mark.parametrize("name", ["leaf1 id:5", "spine id:", "switch-00000000000000ff.example.org"])
def test_who_is_named_is_let_in(name: str) -> None:
    assert PeerNames(LIST, "list").refusal(["nobody", name]) is None


@pytest.mark.parametrize("name", ["leaf1", "Leaf1 id:5", "switch-ff.example.org", "switch-{dpid}.example.org"])
def test_who_is_not_named_is_not_let_in(name: str) -> None:
    assert PeerNames(LIST, "list").refusal([name]) == f"its certificate is for {name}, whom list does not name"


def test_any_of_the_names_of_a_certificate_may_be_the_one_that_is_bound() -> None:
    names = PeerNames("leaf* = 1\nleaf1.example.org = 2\n", "list")
    assert [names.dpid_refusal(["leaf1", "leaf1.example.org"], dpid) for dpid in (1, 2)] == [None, None]
    assert names.dpid_refusal(["leaf1", "leaf1.example.org"], 3) is not None


def test_a_name_that_several_lines_have_speaks_for_what_any_binds_it_to_and_for_nothing_else() -> None:
    names = PeerNames("leaf*\nleaf1 = 1\n", "list")
    assert names.dpid_refusal(["leaf1"], 1) is None
    assert str(names.dpid_refusal(["leaf1"], 2)).endswith("which line 2 of list binds to another datapath id")
    assert names.dpid_refusal(["leaf2"], 2) is None
    assert str(names.dpid_refusal(["leaf2"], 1)).endswith("line 2 of list binds that datapath id to another name")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("# nobody\n\n", "list has no name, so that no peer would be let in"),
        ("leaf1\nleaf2 = twelve\n", "list: line 2: 'twelve' is no datapath id, such as 0000a2f1c3d4e5f6, 0x1a or 26"),
        ("leaf2 = 1,\n", "list: line 1: '' is no datapath id"),
        ("leaf2 = 0\n", "list: line 1: '0' is no datapath id"),
        (" = 5\n", "list: line 1: no name stands before the datapath ids"),
        ("x-{dpid} = 5\n", "list: line 1: {dpid} in the name says already what it speaks for"),
    ],
)
def test_a_bad_list_is_told_with_its_line(text: str, fault: str) -> None:
    with pytest.raises(ValueError, match="list") as raised:
        PeerNames(text, "list")
    assert str(raised.value).startswith(fault)


def test_what_a_certificate_says_is_told_in_one_line_and_no_longer_than_need_be() -> None:
    names = PeerNames("leaf1 = 1\n", "list")
    refusal = names.refusal(["evil\n2026-01-01 all is well\x1b[2J"])
    assert refusal == "its certificate is for evil\ufffd2026-01-01 all is well\ufffd[2J, whom list does not name"
    long = str(names.dpid_refusal(["x" * 70_000], 1))
    assert "x" * 256 + "..." in long and len(long) < 500
