"""`vsrt policy discover`: which properties are set together on which resources, by a log of changes."""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from apps.cli.common import InputError, emit_json, printable
from apps.cli.whole_files import write_whole_text
from controller.durations import parse_duration

if TYPE_CHECKING:
    from controller.policy_discovery.change_table import ChangeTable
    from controller.policy_discovery.varieties import DiscoveredPolicy

HELP = "find the rules that a log of changes follows, and which resources deviate"

METHODS = ("cover", "seed")
LISTED = 8
LEAST_RESOURCES = 4
TEMPLATE_SUFFIXES = (".yaml", ".yml")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the log, what else is known, and what is searched for."""
    parser.add_argument(
        "--log",
        type=Path,
        nargs="+",
        required=True,
        metavar="FILE",
        help="changes (CSV, Parquet or JSON lines): time, resource, type, property, old, new",
    )
    parser.add_argument(
        "--baseline", type=Path, metavar="FILE", help="CSV: type, property, value (default: the first old value seen)"
    )
    parser.add_argument(
        "--inventory", type=Path, metavar="FILE", help="CSV: resource, type, and columns by which classes are told"
    )
    parser.add_argument(
        "--window", metavar="SPAN", help="the last part of the log, such as 30d or 12h (default: all)"
    )
    parser.add_argument(
        "--min-resources",
        type=int,
        default=LEAST_RESOURCES,
        metavar="N",
        help="resources that a policy has at least (default 4)",
    )
    parser.add_argument("--ignore", nargs="+", default=[], metavar="PROPERTY", help="properties that are left out")
    parser.add_argument(
        "--method",
        choices=METHODS,
        default="cover",
        help="cover: policies; seed: a dendrogram of properties by mutual information, uncut",
    )
    parser.add_argument(
        "--plot", type=Path, metavar="DIR", help="draw the policies, or the dendrogram, as PNG and SVG into it"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="write templates for `vsrt template` (.yaml or .yml), or the JSON document, there",
    )


def run(args: argparse.Namespace) -> int:
    """Print the policies, or the dendrogram."""
    from apps.cli.change_file import read_baseline, read_changes, read_inventory
    from controller.policy_discovery.change_table import tabulate
    from controller.policy_discovery.held_settings import templates_text

    if args.min_resources < 1:
        raise InputError(f"--min-resources {args.min_resources}: expected 1 or more")
    is_template = args.output is not None and args.output.suffix in TEMPLATE_SUFFIXES
    if is_template and args.method == "seed":
        raise InputError(f"-o {args.output}: a dendrogram is no template; name a file that ends in .json")
    window_s = None if args.window is None else _span(args.window)
    baseline = None if args.baseline is None else read_baseline(args.baseline)
    inventory = None if args.inventory is None else read_inventory(args.inventory)
    log = read_changes(args.log)
    for note in log.notes:
        print(f"vsrt: {note}", file=sys.stderr)
    kinds = None if inventory is None else inventory.kinds
    table = tabulate(log.changes, baseline, window_s, kinds, args.ignore)
    labels = {} if inventory is None else inventory.labels
    templates: str | None = None
    if args.method == "seed":
        document = _dendrogram(table, args.plot)
    else:
        found = policies_of(table, args.min_resources, labels)
        document = found.document
        if is_template:
            names = [f"policy-{number}" for number in range(1, len(found.policies) + 1)]
            templates = templates_text(table, found.policies, document["policies"], names)
        if args.plot is not None:
            from apps.cli.plots import save_figures
            from apps.cli.policy_plots import policies_figure

            save_figures(args.plot, {"policies": policies_figure(table, document["policies"])})
    if args.output is not None and templates == "":
        print(f"vsrt: {args.output} is not written: no policy has a setting of a switch's database", file=sys.stderr)
    elif args.output is not None:
        write_whole_text(args.output, templates or json.dumps(document, indent=1, allow_nan=False) + "\n")
    if args.json:
        emit_json(document)
    elif args.method == "seed":
        for join in document["dendrogram"]:
            far = "independent" if join["distance"] is None else f"{join['distance']:.4g}"
            print(f"{far:>12}  {printable(', '.join(join['properties']))}")
    else:
        _print_policies(table, document)
    return 0


def _span(text: str) -> float:
    span_s = parse_duration(text)
    if not span_s:
        raise InputError(f"--window {text[:64]!r}: expected a number above 0 and s, m, h or d, such as 30d")
    return span_s


class FoundPolicies(NamedTuple):
    """The policies of a table, and the same as a document (`policies_document`)."""

    policies: list[DiscoveredPolicy]
    document: dict[str, Any]


def policies_of(table: ChangeTable, least: int, labels: dict[str, dict[str, str]]) -> FoundPolicies:
    """Return the policies of a table, each of so many resources at least."""
    from controller.policy_discovery.cover import cover
    from controller.policy_discovery.documents import policies_document
    from controller.policy_discovery.value_cover import cover_by_values
    from controller.policy_discovery.varieties import discovered

    blocks = cover(table.indicator, table.applicable, least)
    blocks = cover_by_values(blocks, table.final, table.applicable, least)
    policies = discovered(blocks, table.indicator, table.final, table.applicable)
    return FoundPolicies(policies, policies_document(table, policies, labels))


def _dendrogram(table: ChangeTable, folder: Path | None) -> dict[str, Any]:
    from controller.policy_discovery.dependence import distances, single_linkage

    found = single_linkage(distances(table.indicator))
    if folder is not None:
        from apps.cli.plots import save_figures
        from apps.cli.policy_plots import dendrogram_figure

        save_figures(folder, {"dendrogram": dendrogram_figure(table.properties, found)})
    joins = [
        {
            "properties": [table.properties[column] for column in join.members],
            "distance": join.distance if math.isfinite(join.distance) else None,
        }
        for join in found
    ]
    return {"dendrogram": joins, "left_out": table.left_out, "counted": table.counted}


def _print_policies(table: ChangeTable, document: dict[str, Any]) -> None:
    rows, columns = table.indicator.shape
    print(f"{document['counted']['lines']} changes; {rows} resources and {columns} properties in the table")
    for number, policy in enumerate(document["policies"], 1):
        told = " and ".join(policy["told_by"]) or _listed(policy["resources"])
        print(printable(f"{number}. {', '.join(policy['properties'])}"))
        print(printable(f"   on {len(policy['resources'])} resources ({', '.join(policy['types'])}): {told}"))
        for variety in policy["varieties"]:
            values = ", ".join(f"{name}={value}" for name, value in variety["values"].items())
            print(printable(f"   {len(variety['resources'])} with {values[:200]}"))
        for kind, deviating in (("deviates", policy["deviations"]), ("is near", policy["near"])):
            for one in deviating[:LISTED]:
                lacks = f" lacks {', '.join(one['missing'])}" if one["missing"] else ""
                other = ", ".join(f"{name}={value}" for name, value in one.get("other", {}).items())
                print(printable(f"   {one['resource']} {kind}:{lacks}{' has ' + other if other else ''}"))
            if len(deviating) > LISTED:
                print(f"   and {len(deviating) - LISTED} more (--json has all)")
    if not document["policies"]:
        print("no properties are set together more often than chance would have it")
    for reason, names in document["left_out"].items():
        if names:
            print(printable(f"left out, {reason}: {_listed(names)}"))


def _listed(names: list[str]) -> str:
    more = len(names) - LISTED
    return ", ".join(names[:LISTED]) + (f" and {more} more" if more > 0 else "")
