"""Probe scripts by chance over a recording: refused with a place, or run; the effects of the replay are the same.

    python benchmarks/probes.py RECORDING [--scripts 1000] [--seed N] [--json]

Half of the scripts are changed by chance, so that most of these are wrong. A script that is right and refused, a
place outside the script, a defect of the probe, and another effect than without a script end the run with the
script. A recording is what VSRT_RECORD names, or inputs of tests/conformance one after the other.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from random import randrange

from measure import report
from observed_replay import observe

from apps.replays import read_lines


def main() -> None:
    """Measure what the command line asks for, and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recording", type=Path)
    parser.add_argument("--scripts", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=randrange(1 << 32))
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with args.recording.open(encoding="utf-8") as file:
        recording = list(read_lines(file))
    measurements = observe(recording, args.scripts, args.seed)
    report(measurements, as_json=args.json, source=f"probes, seed {args.seed}")


if __name__ == "__main__":
    main()
