"""Other benchmarks over the plain sources and over a compiled build, in turn, and how many times as fast that is.

    VSRT_COMPILE=1 pip install --no-deps --target DIR .
    PYTHONPATH=. python benchmarks/compiled_cores.py DIR [--repeats 5] [--only multicast_core]

Each benchmark is a process of its own; the figure of one run is its median. Of times the ratio is plain over
compiled, of rates compiled over plain.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from measure import Measurement, report

ROOT = Path(__file__).parents[1]
COMMANDS = {
    "multicast_core": ("--rounds", "12"),
    "fabric_joins": ("--rounds", "4"),
    "live_fabric": (
        *("--k", "8", "--parts", "start,hosts,joins"),
        *("--groups", "400", "--joins", "20", "--burst", "3600"),
    ),
    "tree_dynamics": ("--repeats", "1", "--failures", "0"),
    "control_plane": ("--repeats", "1", "--joins", "6000", "--controllers", "vsrt,igmplib"),
}
"""What is run, with arguments that make a run short."""


def figures(name: str, arguments: Sequence[str], packages: Path) -> dict[str, tuple[str, float]]:
    """Return the unit and median of all that a benchmark measures over the packages in a folder."""
    done = subprocess.run(
        [sys.executable, "-P", ROOT / "benchmarks" / f"{name}.py", *arguments, "--json"],
        env={**os.environ, "PYTHONPATH": f"{packages}:{ROOT / 'benchmarks'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"{name} failed:\n{done.stderr}")
    measured = json.loads(done.stdout)["measurements"]
    return {what: (found["unit"], found["median"]) for what, found in measured.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("compiled", type=Path, help="folder with an installed compiled build")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", choices=COMMANDS, nargs="+", default=list(COMMANDS))
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if not list(arguments.compiled.glob("*__mypyc*")):
        raise SystemExit(f"{arguments.compiled} holds no compiled build.")
    builds = {"plain": ROOT, "compiled": arguments.compiled.resolve()}
    samples: dict[tuple[str, str], list[float]] = {}
    for name in arguments.only:
        for _ in range(arguments.repeats):
            runs = {build: figures(name, COMMANDS[name], packages) for build, packages in builds.items()}
            for what, (unit, plain) in runs["plain"].items():
                if unit not in ("us", "events/s", "1/s", "times"):
                    continue
                compiled = runs["compiled"][what][1]
                for build, value in (("plain", plain), ("compiled", compiled)):
                    samples.setdefault((f"{what}, {build}", unit), []).append(value)
                if unit != "times":
                    ratio = plain / compiled if unit == "us" else compiled / plain
                    samples.setdefault((f"{what}, times as fast", ""), []).append(ratio)
    measurements = [Measurement(what, unit, values) for (what, unit), values in samples.items()]
    report(measurements, as_json=arguments.json, source=Path(__file__).name)


if __name__ == "__main__":
    main()
