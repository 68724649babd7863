"""Pictures of `vsrt policy discover`: each cell of the table, and each join of the dendrogram."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.colors import to_rgb

from apps.cli import policy_plots
from apps.cli.main import main
from apps.cli.plots import COLOURS
from apps.cli.policy_plots import ALONE, OMITTED, UNSET, dendrogram_figure, policies_figure
from controller.policy_discovery.change_table import ChangeTable
from controller.policy_discovery.dependence import Join

INF = float("inf")
LOG = "time,resource,type,property,old,new\n" + "".join(
    f"{row},port{row},port,{name},0,1\n" for row in range(8) for name in ("mtu", "guard", "fast_leave")
)


def table_of(cells: list[str]) -> ChangeTable:
    indicator = np.array([[cell == "x" for cell in row] for row in cells])
    rows, columns = indicator.shape
    return ChangeTable(
        resources=tuple(f"r{row}" for row in range(rows)),
        kinds=("port",) * rows,
        properties=tuple(f"p${column}" for column in range(columns)),
        values=["1"],
        indicator=indicator,
        applicable=np.ones_like(indicator),
        final=indicator - 1,
        left_out={},
        counted={},
    )


def picture(figure):
    return figure.axes[0].get_images()[0].get_array()


def test_cells_have_the_colour_of_their_policy_or_of_what_they_lack():
    table = table_of(["x..", ".xx", ".x.", "..."])
    policies = [
        {"resources": ["r1", "r2"], "properties": ["p$1", "p$2"]},
        {"resources": ["r1"], "properties": ["p$2"]},
    ]
    figure = policies_figure(table, policies)
    one = to_rgb(COLOURS[0])
    assert [[tuple(cell) for cell in row] for row in picture(figure)] == [
        [one, one, UNSET],
        [one, OMITTED, UNSET],
        [UNSET, UNSET, ALONE],
        [UNSET, UNSET, UNSET],
    ]
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["r1", "r2", "r0", "r3"]
    assert [text.get_text() for text in axes.get_xticklabels()] == [r"p\$1", r"p\$2", r"p\$0"]


def test_of_more_resources_than_there_is_room_for_some_of_each_policy_are_shown(monkeypatch):
    monkeypatch.setattr(policy_plots, "ROWS_SHOWN", 4)
    table = table_of(["x."] * 4 + [".x"] * 5)
    policies = [
        {"resources": [f"r{row}" for row in range(4)], "properties": ["p$0"]},
        {"resources": [f"r{row}" for row in range(4, 9)], "properties": ["p$1"]},
    ]
    figure = policies_figure(table, policies)
    assert len(picture(figure)) == 3
    assert {tuple(cell) for row in picture(figure) for cell in row} == {to_rgb(COLOURS[0]), to_rgb(COLOURS[1]), UNSET}
    assert "shown: 3 of the resources" in figure.axes[0].get_title()


def test_a_join_stands_at_its_distance_and_between_its_parts():
    joins = [Join((0, 2), 1.5), Join((0, 1, 2), 4.0), Join((0, 1, 2, 3), INF)]
    axes = dendrogram_figure(["a", "b", "c", "d"], joins).axes[0]
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert sorted(names) == ["a", "b", "c", "d"] and abs(names.index("a") - names.index("c")) == 1
    first, second, last = (line.get_xdata() for line in axes.lines)
    assert list(first) == [0, 1.5, 1.5, 0]
    assert sorted(second) == [0, 1.5, 4.0, 4.0]
    assert max(last) == pytest.approx(4.6)


@pytest.mark.parametrize("cells", [["x"], ["."]])
def test_a_table_of_one_cell_has_its_pictures(cells):
    assert picture(policies_figure(table_of(cells), [])).shape == (1, 1, 3)
    assert dendrogram_figure(["a"], []).axes


@pytest.mark.parametrize(("method", "name"), [("cover", "policies"), ("seed", "dendrogram")])
def test_pictures_are_written_or_it_is_said_why_not(method, name, tmp_path: Path, capsys):
    log = tmp_path / "changes.csv"
    log.write_text(LOG)
    assert main(["policy", "discover", "--log", str(log), "--method", method, "--plot", str(tmp_path / "plots")]) == 0
    assert {path.name for path in (tmp_path / "plots").iterdir()} == {f"{name}.png", f"{name}.svg"}
    assert (tmp_path / "plots" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert main(["policy", "discover", "--log", str(log), "--method", method, "--plot", str(log)]) == 1
    assert f"{log}: it is there, and no folder" in capsys.readouterr().err
    log.write_text("time,resource,type,property,old,new\n")
    assert main(["policy", "discover", "--log", str(log), "--method", method, "--plot", str(tmp_path / "none")]) == 0
    assert len(list((tmp_path / "none").iterdir())) == 2
