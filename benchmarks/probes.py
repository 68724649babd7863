"""What probe scripts cost a controller, and that they change nothing.

    python benchmarks/probes.py cost [--controllers vsrt,vsrt-os-ken] [--joins 500] [--rows core,firing] [--json]
    python benchmarks/probes.py observe RECORDING [--scripts 1000] [--seed N] [--json]

`cost`: simulated switches join groups as fast as their controllers take them, fifty at a time in turn; joins per
second of the controllers' processor time are compared, which what else runs disturbs least. A script looks at the one
and then at the other of two controllers, and both ratios make one turn. Row `core` does the same in one process with
cores alone, whose joins take less, so that scripts weigh more, and row `after` with a core at which scripts looked
before; their spread is a tenth on a machine that is busy. Row `bytecodes` counts those that such a join takes,
with scripts and without: the same on any machine. Row `nothing` compares a controller at which a thousand scripts
have looked with one that has no probes at all, and two of these with each other. A firing is compared with CEL
(common-expression-language, in Rust) and simpleeval where these are installed. What scripts count must be what the
switch has sent, or the run ends.

`observe`: scripts by chance over a recording, at all its points and at functions that are called in it: refused with
a place, or run; the effects of the replay are the same.
Half of the scripts are changed by chance, so that most of these are wrong. A script that is right and refused, a
place outside the script, a defect of the probe, and another effect than without a script end the run with the
script. A recording is what VSRT_RECORD names, or inputs of tests/conformance one after the other.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from random import randrange

from controllers import CONTROLLERS
from measure import Measurement, names_of, report
from observed_replay import observe
from probe_cost import JOINS, attached, exactness, firings, nothing_attached, overload
from probe_joins import bytecodes_in_core, joins_after_scripts, joins_in_core

from apps.replays import read_lines

ROWS: dict[str, Callable[[str, int], list[Measurement]]] = {
    "nothing": nothing_attached,
    "attached": attached,
    "overload": overload,
    "exactness": exactness,
}

ROWS_OF_NONE: dict[str, Callable[[], list[Measurement]]] = {
    "after": joins_after_scripts,
    "core": joins_in_core,
    "bytecodes": bytecodes_in_core,
    "firing": firings,
}
"""Rows for which no controller runs."""


def main() -> None:
    """Measure what the command line asks for, and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    all_rows = [*ROWS, *ROWS_OF_NONE]
    commands = parser.add_subparsers(dest="command", required=True)
    cost = commands.add_parser("cost", help="what scripts cost")
    cost.add_argument("--controllers", type=names_of(CONTROLLERS), default=["vsrt", "vsrt-os-ken"])
    cost.add_argument("--joins", type=int, default=JOINS)
    cost.add_argument("--rows", type=names_of(all_rows), default=all_rows)
    observed = commands.add_parser("observe", help="that scripts change nothing")
    observed.add_argument("recording", type=Path)
    observed.add_argument("--scripts", type=int, default=1000)
    observed.add_argument("--seed", type=int, default=randrange(1 << 32))
    for command in (cost, observed):
        command.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.command == "cost":
        measured = [
            each
            for name in args.controllers
            for row, measure in ROWS.items()
            if row in args.rows
            for each in measure(name, args.joins)
        ]
        measured += [each for row, measure in ROWS_OF_NONE.items() if row in args.rows for each in measure()]
        report(measured, as_json=args.json, source=Path(__file__).name)
        return
    with args.recording.open(encoding="utf-8") as file:
        recording = list(read_lines(file))
    measurements = observe(recording, args.scripts, args.seed)
    report(measurements, as_json=args.json, source=f"probes, seed {args.seed}")


if __name__ == "__main__":
    main()
