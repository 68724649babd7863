"""Plots of `vsrt policy discover`: which cells of the table policies cover, or the dendrogram of its properties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from apps.cli.plots import COLOURS, SETTINGS

if TYPE_CHECKING:
    from controller.policy_discovery.change_table import ChangeTable
    from controller.policy_discovery.dependence import Join

ROWS_SHOWN, COLUMNS_SHOWN = 400, 80
"""Resources and properties that a picture has room for; it says so where there are more."""

NAMES_SHOWN = 60
"""Resources that are named at their rows."""

NAME_LENGTH = 40

UNSET, ALONE, OMITTED = (1.0, 1.0, 1.0), (0.75, 0.75, 0.75), (0.1, 0.1, 0.1)


def policies_figure(table: ChangeTable, policies: Sequence[dict[str, Any]]) -> Figure:
    """Draw the table with the cells of each policy in a colour of its own, what its members lack in black.

    A cell of several policies has the colour of the first, and one that is set and in none is grey.
    """
    with mpl.rc_context({**SETTINGS, "axes.grid": False}):
        rows, columns = (
            _order(table.resources, policies, "resources"),
            _order(table.properties, policies, "properties"),
        )
        step = -(-len(rows) // ROWS_SHOWN) or 1
        rows, columns = rows[::step], columns[:COLUMNS_SHOWN]
        at_row = {table.resources[row]: place for place, row in enumerate(rows)}
        at_column = {table.properties[column]: place for place, column in enumerate(columns)}
        is_set = table.indicator[np.ix_(rows, columns)]
        picture = np.where(is_set[:, :, None], ALONE, UNSET)
        taken = np.zeros(is_set.shape, bool)
        for number, policy in enumerate(policies):
            inside = np.zeros(is_set.shape, bool)
            own_rows = [at_row[name] for name in policy["resources"] if name in at_row]
            own_columns = [at_column[name] for name in policy["properties"] if name in at_column]
            inside[np.ix_(own_rows, own_columns)] = True
            inside &= ~taken
            picture[inside & is_set] = to_rgb(COLOURS[number % (len(COLOURS) - 1)])
            picture[inside & ~is_set] = OMITTED
            taken |= inside
        figure = Figure(
            figsize=(4 + 0.22 * max(8, len(columns)), 3 + 0.16 * min(NAMES_SHOWN, max(12, len(rows)))),
            layout="constrained",
        )
        axes = figure.subplots()
        if rows and columns:
            axes.imshow(picture, aspect="auto", interpolation="nearest")
        axes.set_xticks(range(len(columns)), [_called(table.properties[c]) for c in columns], rotation=90, fontsize=8)
        if len(rows) <= NAMES_SHOWN:
            axes.set_yticks(range(len(rows)), [_called(table.resources[row]) for row in rows], fontsize=8)
        else:
            axes.set_yticks([])
            axes.set_ylabel(f"{len(rows)} resources")
        axes.set_title(_title(table, policies, len(rows), len(columns)), fontsize=11)
        marks = [
            Patch(color=COLOURS[number % (len(COLOURS) - 1)], label=f"policy {number + 1}")
            for number in range(min(len(policies), len(COLOURS) - 1))
        ]
        marks += [Patch(color=ALONE, label="set, in no policy"), Patch(color=OMITTED, label="lacking")]
        figure.legend(handles=marks, loc="outside lower center", ncols=min(5, len(marks)), fontsize=8)
        return figure


def _order(names: Sequence[str], policies: Sequence[dict[str, Any]], field: str) -> list[int]:
    """Return the places of all names, those of the first policy first."""
    place = {name: number for number, name in enumerate(names)}
    first = dict.fromkeys(place[name] for policy in policies for name in policy[field])
    return list(dict.fromkeys([*first, *range(len(names))]))


def _called(name: str) -> str:
    """Return a name as a picture has room for it; what only mathematical text gives a meaning stands for itself."""
    shown = "".join(char if char.isprintable() else "?" for char in name)
    shown = shown if len(shown) <= NAME_LENGTH else f"{shown[: NAME_LENGTH - 3]}..."
    return shown.replace("$", r"\$")


def _title(table: ChangeTable, policies: Sequence[dict[str, Any]], row_count: int, column_count: int) -> str:
    rows, columns = table.indicator.shape
    text = f"{len(policies)} policies, {rows} resources, {columns} properties"
    if (row_count, column_count) != (rows, columns):
        text += f"\nshown: {row_count} of the resources, evenly, and {column_count} of the properties"
    return text


def dendrogram_figure(properties: Sequence[str], joins: Sequence[Join]) -> Figure:
    """Draw which properties are joined at which distance, in 1/bits; those that are independent join at the edge."""
    finite = [join.distance for join in joins if np.isfinite(join.distance)]
    edge = 1.15 * max(finite, default=1.0)
    clusters: dict[frozenset[int], tuple[float, float]] = {}
    order = _leaves(joins, len(properties))
    for place, column in enumerate(order):
        clusters[frozenset((column,))] = (float(place), 0.0)
    with mpl.rc_context({**SETTINGS, "axes.grid": False}):
        figure = Figure(figsize=(9, 1.5 + 0.22 * max(6, len(properties))), layout="constrained")
        axes = figure.subplots()
        for join in joins:
            members = frozenset(join.members)
            first, second = (cluster for cluster in clusters if cluster <= members)
            (y_first, x_first), (y_second, x_second) = clusters.pop(first), clusters.pop(second)
            x, is_independent = (join.distance, False) if np.isfinite(join.distance) else (edge, True)
            style: dict[str, Any] = {"color": "0.6" if is_independent else COLOURS[0], "linewidth": 1.5}
            axes.plot([x_first, x, x, x_second], [y_first, y_first, y_second, y_second], **style)
            clusters[members] = ((y_first + y_second) / 2, x)
        axes.set_yticks(range(len(order)), [_called(properties[column]) for column in order], fontsize=8)
        axes.set_xlim(0, 1.05 * edge)
        axes.set_xlabel("distance, 1 / mutual information in bits (grey: independent)")
        axes.set_title(f"{len(properties)} properties, single linkage", fontsize=11)
        return figure


def _leaves(joins: Sequence[Join], count: int) -> list[int]:
    """Return the columns in an order in which no lines of the dendrogram cross."""
    clusters = {frozenset((column,)): [column] for column in range(count)}
    for join in joins:
        members = frozenset(join.members)
        first, second = (cluster for cluster in clusters if cluster <= members)
        clusters[members] = clusters.pop(first) + clusters.pop(second)
    return [column for order in clusters.values() for column in order]
