import argparse
import csv
import io
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import duckdb
import pytest

from apps.cli.loads_file import COLUMNS
from apps.cli.main import main
from apps.cli.simulate_command import add_arguments
from controller.simulation.placements import PLACEMENTS
from controller.simulation.sizes import SIZES
from topology.files.node_link import write
from topology.generators import make
from topology.graph import Graph, NodeKind

FIGURES = {
    "unused_pct",
    "below_5_pct",
    "max_pct",
    "p99_pct",
    "over_100_pct",
    "links_per_group",
    "optimal_pct",
    "max_over_lower_bound",
    "build_s",
    "groups_per_s",
}
SMALL = ("--topology", "avalanche24", "--vms", "100", "--groups", "40", "--group-size", "3:6")
PLOTS = ("maximum-by-groups", "tree-sizes", "utilisation-cdf")


def call(capsys, *words):
    status = main(["simulate", *(str(word) for word in words)])
    out, err = capsys.readouterr()
    return status, out, err


def simulate(capsys, *words):
    status, out, err = call(capsys, *words, "--json")
    assert (status, err) == (0, "")
    return json.loads(out)


@pytest.mark.parametrize(
    ("words", "topology", "switches", "links"),
    [
        (("--servers", 100, "--per-rack", 10, "--type", "tree"), "servers-tree", 11, 10),
        (("--servers", 100, "--per-rack", 5), "servers-fattree", 24, 80),
        (("--servers", 1000), "servers-fattree", 29, 100),
    ],
)
def test_servers_in_racks_are_simulated(capsys, words, topology, switches, links):
    document = simulate(capsys, *words, "--groups", 20, "--vms", 200, "--algorithms", "vsrt,pim-sm-fixed-core")
    assert (document["topology"], document["switches"], document["links"]) == (topology, switches, links)


def test_on_a_tree_all_trees_are_the_same(capsys):
    names = "vsrt,vsrt-literal,pim-sm-fixed-core,pim-sm-random-core"
    document = simulate(capsys, "--type", "tree", "--groups", 200, "--algorithms", names)
    algorithms = untimed(document)["algorithms"]
    assert len({json.dumps(figures, sort_keys=True) for figures in algorithms.values()}) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--servers", 0), "--servers: 0 is not a whole number from 1 to 65536"),
        (("--per-rack", 201), "--per-rack: 201 is not a whole number from 1 to 200"),
        (("--servers", 5, "--topology", "fattree"), "--topology: gives the fabric; leave --servers"),
    ],
)
def test_servers_out_of_bounds_are_refused(capsys, words, message):
    status, _, err = call(capsys, *words)
    assert status == 2
    assert message in err


def untimed(document):
    for figures in (*document["algorithms"].values(), *document.get("standard_deviation", {}).values()):
        figures.pop("build_s")
        figures.pop("groups_per_s")
    return document


@pytest.fixture
def fabric(tmp_path):
    file = tmp_path / "fabric.json"
    file.write_text(write(make("avalanche24")))
    return file


def test_options_figures_and_distributions_are_in_the_docs():
    docs = (Path(__file__).parents[3] / "docs" / "simulator.md").read_text()
    parser = argparse.ArgumentParser(add_help=False)
    add_arguments(parser)
    ours = {option for action in parser._optionals._group_actions for option in action.option_strings}
    assert {option for option in ours if f"`{option}" not in docs} == set()
    assert {
        name for name in (*FIGURES, *SIZES, *PLACEMENTS, *COLUMNS) if not re.search(rf"\b{name}\b", docs)
    } == set()


def test_json_has_the_figures_of_every_algorithm(capsys):
    document = simulate(capsys, *SMALL)
    assert list(document["algorithms"]) == [
        "vsrt",
        "vsrt-literal",
        "pim-sm-fixed-core",
        "pim-sm-random-core",
        "pim-sm-static-uplink",
    ]
    for figures in document["algorithms"].values():
        assert set(figures) == FIGURES
        assert figures["max_over_lower_bound"] == pytest.approx(figures["max_pct"] / document["lower_bound_pct"])
        assert figures["build_s"] * figures["groups_per_s"] == pytest.approx(40)
    assert document["algorithms"]["vsrt"]["optimal_pct"] == 100
    assert document["groups"] == 40
    assert document["links"] == 24
    assert document["disconnected"] == {"members": 0, "groups": 0, "first": []}


def test_the_same_seed_gives_the_same_figures_and_another_one_others(capsys):
    one = untimed(simulate(capsys, *SMALL, "--seed", 5))
    assert untimed(simulate(capsys, *SMALL, "--seed", 5)) == one
    assert untimed(simulate(capsys, *SMALL, "--seed", 6))["algorithms"] != one["algorithms"]


def test_several_seeds_give_means_and_standard_deviations(capsys):
    words = (*SMALL, "--algorithms", "vsrt")
    single = [simulate(capsys, *words, "--seed", seed)["algorithms"]["vsrt"]["max_pct"] for seed in (3, 4)]
    document = simulate(capsys, *words, "--seed", 3, "--seeds", 2)
    assert document["seeds"] == [3, 4]
    assert document["algorithms"]["vsrt"]["max_pct"] == pytest.approx(sum(single) / 2)
    deviation = abs(single[0] - single[1]) / 2**0.5
    assert document["standard_deviation"]["vsrt"]["max_pct"] == pytest.approx(deviation)


def test_capacity_is_the_topologys_or_the_one_given(capsys):
    own = simulate(capsys, *SMALL)["algorithms"]["vsrt"]["max_pct"]
    wider = simulate(capsys, *SMALL, "--capacity-bps", "1e8")["algorithms"]["vsrt"]["max_pct"]
    assert own == pytest.approx(10 * wider)


def test_the_table_shows_every_algorithm_and_the_bound(capsys):
    status, out, err = call(capsys, *SMALL, "--algorithms", "vsrt,source-tree,steiner", "--seeds", 2)
    assert (status, err) == (0, "")
    rows = out.splitlines()
    assert rows[1].split()[0] == "algorithm"
    assert [row.split()[0] for row in rows[2:5]] == ["vsrt", "source-tree", "steiner"]
    assert "+-" in rows[2]
    assert "No trees have a busiest link below" in rows[5]


def test_groups_come_from_a_file_with_a_topology_from_a_file(capsys, tmp_path, fabric):
    groups = tmp_path / "groups.csv"
    groups.write_text("group,members,rate_bps\na,h1;h2,1e6\nb,h1;h24,2e6\n")
    document = simulate(capsys, "--topology", fabric, "--groups-file", groups, "--algorithms", "vsrt")
    figures = document["algorithms"]["vsrt"]
    assert (document["groups"], document["members"]) == (2, 4)
    assert figures["links_per_group"] == 2
    assert figures["max_pct"] == pytest.approx(20)
    assert document["lower_bound_pct"] <= 20


def test_disconnected_members_are_reported_and_the_rest_is_built(capsys, tmp_path):
    graph = Graph()
    for tor in ("t1", "t2", "t3"):
        graph.add_node(tor, NodeKind.TOR)
        graph.add_node(f"h{tor}", NodeKind.HOST)
        graph.add_link(tor, f"h{tor}")
    graph.add_link("t1", "t2")
    fabric = tmp_path / "fabric.json"
    fabric.write_text(write(graph))
    groups = tmp_path / "groups.jsonl"
    groups.write_text(json.dumps({"group": "feed", "members": ["ht1", "ht2", "ht3"], "rate_bps": 1e6}))
    status, out, err = call(capsys, "--topology", fabric, "--groups-file", groups, "--json")
    document = json.loads(out)
    assert status == 0
    first = [{"group": "feed", "switch": "t3", "members": 1}]
    assert document["disconnected"] == {"members": 1, "groups": 1, "first": first}
    assert document["algorithms"]["vsrt"]["links_per_group"] == 1
    assert "group feed at t3" in err


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_loads_of_every_link_are_written(capsys, tmp_path, suffix):
    file = tmp_path / f"loads.{suffix}"
    file.write_text("old")
    document = simulate(capsys, *SMALL, "--algorithms", "vsrt,pim-sm-fixed-core", "--loads", file)
    rows = duckdb.sql(f"select * from '{file}'")
    assert rows.columns == ["algorithm", "u", "v", "load_bps", "utilisation_pct"]
    found = rows.fetchall()
    assert len(found) == 2 * 24
    for name, figures in document["algorithms"].items():
        mine = [row for row in found if row[0] == name]
        assert max(row[4] for row in mine) == pytest.approx(figures["max_pct"])
        assert all(row[4] == pytest.approx(100 * row[3] / 1e7) for row in mine)
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_csv_loads_have_a_header_and_whole_bits_per_second(capsys, tmp_path):
    file = tmp_path / "loads.csv"
    simulate(capsys, *SMALL, "--algorithms", "vsrt", "--loads", file)
    rows = list(csv.DictReader(io.StringIO(file.read_text())))
    assert all(row["load_bps"].isdecimal() for row in rows)


def test_plots_are_valid_images_and_repeat(capsys, tmp_path):
    import matplotlib.image

    for folder in ("one", "two"):
        words = ("--algorithms", "vsrt,pim-sm-fixed-core", "--plot", tmp_path / folder / "plots")
        simulate(capsys, *SMALL, *words)
    folder = tmp_path / "one" / "plots"
    assert sorted(path.name for path in folder.iterdir()) == sorted(f"{n}.{f}" for n in PLOTS for f in ("png", "svg"))
    for name in PLOTS:
        pixels = matplotlib.image.imread(folder / f"{name}.png")
        assert pixels.shape[0] > 300
        assert pixels.shape[1] > 600
        assert pixels[..., :3].std() > 0.01
        assert ElementTree.parse(folder / f"{name}.svg").getroot().tag.endswith("svg")
        other = tmp_path / "two" / "plots" / f"{name}.svg"
        assert other.read_bytes() == (folder / f"{name}.svg").read_bytes()


def test_plots_show_groups_without_any_load(capsys, tmp_path):
    words = ("--rate-bps", "0", "--groups", 1, "--algorithms", "vsrt", "--plot", tmp_path / "plots")
    simulate(capsys, *SMALL, *words)
    assert len(list((tmp_path / "plots").iterdir())) == 6


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--topology", "nowhere.json"), "nowhere.json"),
        (("--algorithms", "vsrt,fastest"), "fastest"),
        (("--group-size", "9:3"), "--group-size"),
        (("--group-size", "three"), "three"),
        (("--vms", "5"), "--group-size"),
        (("--vms", "0"), "--vms"),
        (("--groups", "-4"), "--groups"),
        (("--sizes", "normal"), "--sizes"),
        (("--placement", "moon"), "--placement"),
        (("--rate-bps", "fast"), "fast"),
        (("--rate-bps", "5:-1"), "--rate-bps"),
        (("--rate-bps", "nan"), "--rate-bps"),
        (("--capacity-bps", "0"), "--capacity-bps"),
        (("--capacity-bps", "nan"), "--capacity-bps"),
        (("--seed", "-1"), "--seed"),
        (("--seeds", "0"), "--seeds"),
        (("--loads", "loads.txt"), "loads.txt"),
        (("--loads", "no/such/folder/loads.csv"), "no/such/folder"),
        (("--loads", "loads.csv", "--seeds", "2"), "--loads"),
        (("--groups-file", "no-such-file"), "no-such-file"),
    ],
)
def test_bad_options_are_named_and_nothing_is_written(capsys, tmp_path, monkeypatch, words, says):
    monkeypatch.chdir(tmp_path)
    plot = () if "--loads" in words else ("--loads", "other.csv")
    status, out, err = call(capsys, *SMALL, *plot, "--plot", "plots", *words, "--json")
    assert (status, out) == (2, "")
    assert says in err
    assert list(tmp_path.iterdir()) == []


def test_a_bad_line_of_a_groups_file_leaves_nothing_behind(capsys, tmp_path):
    groups = tmp_path / "groups.csv"
    groups.write_text("group,members,rate_bps\na,h1;h2,1e6\nb,h1;h99,2e6\n")
    loads = tmp_path / "loads.csv"
    words = ("--groups-file", groups, "--loads", loads, "--plot", tmp_path / "plots", "--json")
    status, out, err = call(capsys, "--topology", "avalanche24", *words)
    assert (status, out) == (2, "")
    assert f"{groups}:3: members: " in err
    assert "h99" in err
    assert [path.name for path in tmp_path.iterdir()] == ["groups.csv"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda graph, links: graph["nodes"].append({"id": "spare", "kind": "host"}), "spare"),
        (lambda graph, links: links[0].update(capacity_bps=0), "links[0].capacity_bps"),
        (lambda graph, links: links.clear(), "no link"),
    ],
)
def test_faults_of_the_topology_are_told_with_its_name(capsys, tmp_path, fabric, change, says):
    document = json.loads(fabric.read_text())
    change(document, document["links"])
    fabric.write_text(json.dumps(document))
    status, out, err = call(capsys, "--topology", fabric, *SMALL[2:])
    assert (status, out) == (2, "")
    assert str(fabric) in err
    assert says in err


def test_a_topology_without_hosts_is_refused_unless_groups_name_its_switches(capsys, tmp_path):
    fabric = tmp_path / "fabric.edges"
    fabric.write_text("a b\nb c\n")
    status, _, err = call(capsys, "--topology", fabric)
    assert status == 2
    assert f"{fabric}: " in err
    groups = tmp_path / "groups.csv"
    groups.write_text("group,members,rate_bps\nx,a;c,1e6\n")
    document = simulate(capsys, "--topology", fabric, "--groups-file", groups, "--algorithms", "vsrt")
    assert document["algorithms"]["vsrt"]["links_per_group"] == 2


def test_plots_into_a_file_are_refused(capsys, tmp_path):
    file = tmp_path / "plots"
    file.write_text("mine")
    status, out, err = call(capsys, *SMALL, "--plot", file)
    assert (status, out) == (2, "")
    assert str(file) in err
    assert file.read_text() == "mine"


def test_a_bar_is_drawn_on_a_terminal_and_leaves_an_empty_line():
    ours, theirs = pty.openpty()
    words = ("simulate", "--groups", "3000", "--algorithms", "vsrt-literal", "--json")
    code = "import sys; from apps.cli.main import main; sys.exit(main())"
    with subprocess.Popen(
        [sys.executable, "-c", code, *words],
        stdout=subprocess.PIPE,
        stderr=theirs,
        cwd=Path(__file__).parents[3],
    ) as process:
        os.close(theirs)
        shown = b""
        while chunk := read_some(ours):
            shown += chunk
        out = process.communicate()[0]
    os.close(ours)
    assert process.returncode == 0
    assert json.loads(out)["groups"] == 3000
    assert b"vsrt-literal [" in shown
    assert shown.split(b"\r")[-2:] == [b" " * len(shown.split(b"\r")[-2]), b""]


def read_some(descriptor):
    try:
        return os.read(descriptor, 4096)
    except OSError:
        return b""


def test_aliases_lower_the_busiest_link_where_few_groups_have_most_of_the_traffic(capsys):
    words = ("--placement", "tenant", "--rates", "pareto:1.2", "--algorithms", "vsrt", "--seed", 4)
    one = simulate(capsys, *words)["algorithms"]["vsrt"]
    assert "aliases_used" not in one
    none = simulate(capsys, *words, "--aliases", 0)["algorithms"]["vsrt"]
    assert none["aliases_used"] == 0
    assert none["max_pct"] == one["max_pct"] and none["links_per_group"] == one["links_per_group"]
    few = simulate(capsys, *words, "--aliases", 2)["algorithms"]["vsrt"]
    many = simulate(capsys, *words, "--aliases", 10)["algorithms"]["vsrt"]
    assert 0 < few["aliases_used"] <= 2 < many["aliases_used"] <= 10
    assert many["max_pct"] < few["max_pct"] < one["max_pct"]
    assert many["optimal_pct"] == 100
    status, out, _ = call(capsys, *words, "--aliases", 2)
    assert status == 0 and out.splitlines()[1].endswith("aliases")


def test_even_rates_need_no_alias(capsys):
    assert simulate(capsys, "--algorithms", "vsrt", "--aliases", 10)["algorithms"]["vsrt"]["aliases_used"] == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--rates", "pareto"), "'pareto' is neither uniform nor pareto:ALPHA"),
        (("--rates", "pareto:x"), "'x' is no number"),
        (("--rates", "pareto:1"), "1 is not from 1.01 to 100"),
        (("--rates", "pareto:nan"), "nan is not from 1.01 to 100"),
        (("--aliases", "-1"), "--aliases: -1 is not a whole number from 0 to 65536"),
    ],
)
def test_bad_rates_and_aliases_are_told(capsys, words, told):
    status, _, err = call(capsys, *SMALL, *words)
    assert status == 2 and told in err
