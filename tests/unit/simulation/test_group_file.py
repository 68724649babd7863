import json

import pytest

from controller.simulation.data_centre import DataCentre
from controller.simulation.group_file import GroupFileError, read_groups
from topology.generators import make
from topology.graph import Graph, NodeKind

HEADER = "group,members,rate_bps\n"


@pytest.fixture(scope="module")
def centre():
    graph = make("avalanche24")
    graph.add_node("spare", NodeKind.HOST)
    return DataCentre(graph)


def read(centre, text):
    return read_groups(text.splitlines(keepends=True), "groups", centre)


def switches(centre, file, group):
    start, stop = file.groups.offsets[group : group + 2]
    return [centre.switches[i] for i in file.groups.terminals[start:stop]]


def test_csv_and_json_lines_say_the_same(centre):
    tor = centre.switches[centre.home[0]]
    csv = read(centre, f"{HEADER}a,h1;h24;h2,1e6\n\n7,{tor}; h24 ,0\n")
    lines = [
        {"group": "a", "members": ["h1", "h24", "h2"], "rate_bps": 1e6},
        {"rate_bps": 0, "members": [tor, "h24"], "group": 7},
    ]
    other = read(centre, "\n".join(map(json.dumps, lines)))
    for file in (csv, other):
        assert list(file.names) == ["a", "7"]
        assert file.groups.rates_bps.tolist() == [1_000_000, 0]
        assert file.groups.members_at.tolist() == [2, 1, 1, 1]
        assert switches(centre, file, 0) == switches(centre, file, 1)
        assert switches(centre, file, 0)[0] == tor


def test_columns_may_stand_in_any_order_and_a_mark_before_them(centre):
    file = read(centre, "\ufeffrate_bps,group,members\r\n5,x,h1\r\n")
    assert list(file.names) == ["x"]
    assert file.groups.rates_bps.tolist() == [5]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"\n\n{HEADER}a,h1\n", 4),
        ('\n\n{"group": "x", "members": ["h1"], "rate_bps": 1}\n \n{}\n', 5),
    ],
)
def test_empty_lines_are_skipped_and_counted(centre, text, line):
    with pytest.raises(GroupFileError) as caught:
        read(centre, text)
    assert caught.value.line == line


def test_members_named_twice_count_once(centre):
    assert read(centre, f"{HEADER}a,h1;h2;h1,1\n").groups.members_at.tolist() == [2]


def test_switches_with_numbers_for_names_are_members_by_number_and_text():
    graph = Graph()
    graph.add_node(1, NodeKind.TOR)
    graph.add_node(2, NodeKind.TOR)
    graph.add_link(1, 2)
    centre = DataCentre(graph)
    assert switches(centre, read(centre, f"{HEADER}a,2;1,1\n"), 0) == [2, 1]
    assert switches(centre, read(centre, '{"group": "a", "members": [2, "1"], "rate_bps": 1}'), 0) == [2, 1]
    with pytest.raises(GroupFileError, match="True is neither"):
        read(centre, '{"group": "a", "members": [true], "rate_bps": 1}')


@pytest.mark.parametrize(
    ("line", "field", "says"),
    [
        ("a,h1;h99,1", "members", "'h99'"),
        ("a,spare;h1,1", "members", "no link"),
        ("a,,1", "members", "empty"),
        ("a,h1;;h2,1", "members", "empty"),
        ("a,CORE,1", "members", "core"),
        ("a,h1,-1", "rate_bps", "negative"),
        ("a,h1,fast", "rate_bps", "no number"),
        ("a,h1,nan", "rate_bps", "no number"),
        ("a,h1,inf", "rate_bps", "above"),
        ("a,h1,", "rate_bps", "no number"),
        (",h1,1", "group", "empty"),
        ("first,h1,1", "group", "line 2"),
        ("a,h1", "", "columns"),
        ("a,h1,1,2", "", "columns"),
        ('a,"h1,1', "", "CSV"),
    ],
)
def test_a_bad_line_of_csv_is_named_with_its_field(centre, line, field, says):
    core = next(str(node) for node in centre.switches if centre.graph.kind(node) is NodeKind.CORE)
    text = f"{HEADER}first,h1;h2,1e6\n{line.replace('CORE', core)}\nlast,h3,1\n"
    if '"' in line:
        text = text.removesuffix("last,h3,1\n")
    with pytest.raises(GroupFileError) as caught:
        read(centre, text)
    assert (caught.value.line, caught.value.field) == (3, field)
    assert says in caught.value.message
    assert str(caught.value).startswith("groups:3: ")


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ('{"group": "a", "members": ["h1"]}', "rate_bps"),
        ('{"group": "a", "members": ["h1"], "rate_bps": 1, "ttl": 3}', "ttl"),
        ('{"group": "a", "members": "h1", "rate_bps": 1}', "members"),
        ('{"group": "a", "members": [["h1"]], "rate_bps": 1}', "members"),
        ('{"group": "a", "members": [], "rate_bps": 1}', "members"),
        ('{"group": null, "members": ["h1"], "rate_bps": 1}', "group"),
        ('{"group": "a", "members": ["h1"], "rate_bps": true}', "rate_bps"),
        ('{"group": "a", "members": ["h1"], "rate_bps": NaN}', "rate_bps"),
        ('{"group": "a", "members": ["h1"], "rate_bps": null}', "rate_bps"),
        ('{"group": "a", "members": ["h1"], "rate_bps": 1', ""),
        ("[1]", ""),
        ("[" * 100_000, ""),
    ],
)
def test_a_bad_json_line_is_named_with_its_field(centre, line, field):
    good = '{"group": "first", "members": ["h1"], "rate_bps": 1}'
    with pytest.raises(GroupFileError) as caught:
        read(centre, f"{good}\n{line}\n")
    assert (caught.value.line, caught.value.field) == (2, field)


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        ("", 1, "group"),
        ("group,members\na,h1\n", 1, "rate_bps"),
        ("group,members,rate_bps,rate_bps\n", 1, "rate_bps"),
        ("group,members,rate_bps,colour\n", 1, "colour"),
        (HEADER, None, ""),
    ],
)
def test_a_file_without_groups_or_with_other_columns_is_refused(centre, text, line, field):
    with pytest.raises(GroupFileError) as caught:
        read(centre, text)
    assert (caught.value.line, caught.value.field) == (line, field)


def test_one_bad_line_among_very_many_is_found(centre):
    def lines():
        yield HEADER
        for number in range(50_000):
            yield f"{number},h{number % 24 + 1};h{(number + 7) % 24 + 1},{-1 if number == 40_000 else 1e5}\n"

    with pytest.raises(GroupFileError, match=r"groups:40002: rate_bps: .*negative"):
        read_groups(lines(), "groups", centre)
