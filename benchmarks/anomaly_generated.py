"""Normalcy on series made by a seed, with NAB's rule, and how its score depends on every constant of the scores."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from anomaly_normalcy import Floats, Labelled, read_nab
from generated_series import KINDS, generated
from measure import print_table
from nab_scorer import Result, ScoredFile, held_out_score, probation, score
from numpy.typing import NDArray

from controller.anomaly.normalcy.discord import Discords
from controller.anomaly.normalcy.score import Scorer, Units, units_of
from controller.anomaly.normalcy.settings import DAY_S, Settings

RANGES: dict[str, tuple[float, ...]] = {
    "hold_off_s": (DAY_S / 4, DAY_S / 2, DAY_S, 2 * DAY_S),
    "repeat_factor": (1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 16.0),
    "alarm_score": (0.13, 0.15, 0.17, 0.18, 0.2, 0.22, 0.25, 0.3, 0.33),
    "known_shape_divisor": (1.0, 1.5, 2.0, 2.5, 3.0),
    "habit_gain": (1.0, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0),
    "duration_gain": (0.0, 0.5, 1.0),
    "duration_s": (1800.0, 3600.0, 10_800.0),
    "scale_quantile": (0.001, 0.002, 0.003, 0.005, 0.007, 0.01, 0.02),
    "scale_floor_share": (0.003, 0.01, 0.03),
    "discord_s": (1800.0, 3600.0, 7200.0),
    "discord_quantile": (0.95, 0.97, 0.99),
    "discord_gain": (0.0, 0.5, 1.0, 2.0),
}
"""Each constant of the scores is set to these, the others staying as they are."""


def tried() -> list[Settings]:
    """Return the defaults and each constant at each value of its range."""
    return [Settings(), *(with_value(name, value) for name, values in RANGES.items() for value in values)]


def with_value(name: str, value: float) -> Settings:
    """Return the defaults with one constant at another value."""
    return replace(Settings(), **{name: value})  # type: ignore[arg-type]


class Judged(NamedTuple):
    """Score of a collection at its best threshold, and of each folder or kind at the best threshold of the others."""

    best: Result
    held_out: float


class Block(NamedTuple):
    """Rows that are held against the same bounds: times, how far outside, and quantiles of what was seen before."""

    at_s: Floats
    apart: Floats
    units: dict[tuple[float, float], Units]
    """By `scale_quantile` and `scale_floor_share`."""
    unlike: dict[tuple[float, float], Floats]
    """By the constants of `discord_of`."""


def discord_of(settings: Settings) -> tuple[float, float]:
    """Return the constants that decide how far stretches are from all others."""
    return settings.discord_s, settings.discord_quantile


class Recorder(Scorer):
    """Keeps how far every row is outside of its bounds, and how unlike all before, with every constant tried."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[Block] = []
        self._each = {discord_of(one): Discords(one) for one in tried()}
        self._block_unlike: dict[tuple[float, float], Floats] = {}

    def _distances(self, at_s: Floats, values: Floats) -> Floats:
        apart = super()._distances(at_s, values)
        held = self._rolling.history().values
        scales = {(one.scale_quantile, one.scale_floor_share): one for one in tried()}
        units = {key: units_of(held, one) if len(held) else Units(1.0, 1.0) for key, one in scales.items()}
        self.blocks.append(Block(at_s, apart, units, self._block_unlike))
        return apart

    def _update(self) -> None:
        at_s, values = (np.concatenate(part) for part in zip(*self._waiting, strict=True))
        super()._update()
        for discords in self._each.values():
            if not discords.has_begun:
                discords.begin(float(np.median(np.diff(at_s))))
                discords.extend(values)
            discords.learn()

    def _unlike(self, values: Floats, fresh: NDArray[np.bool_]) -> Floats:
        self._block_unlike = {}
        for key, discords in self._each.items():
            self._block_unlike[key] = np.zeros(len(values))
            if discords.has_begun:
                self._block_unlike[key][fresh] = discords.extend(values[fresh])
        return self._block_unlike[discord_of(self._settings)]


class Replay(Scorer):
    """Scores recorded rows; a block's values are how far they are outside."""

    def play(self, rows: int, late: NDArray[np.bool_], blocks: Sequence[Block]) -> Floats:
        """Return the scores of all rows, float64[rows]; `late` were put aside."""
        settings, parts = self._settings, []
        self._first_s = float(blocks[0].at_s[0])
        for block in blocks:
            self._units = block.units[settings.scale_quantile, settings.scale_floor_share]
            parts.append(self._score(block.at_s, block.apart, block.unlike[discord_of(settings)]))
        found = np.zeros(rows)
        found[~late] = np.concatenate(parts)
        return found

    def _distances(self, at_s: Floats, values: Floats) -> Floats:
        return values


def collection(seed: int, per_kind: int) -> dict[str, Labelled]:
    """Return `per_kind` series of every kind, by kind and number."""
    made = {f"{kind}/{number}": generated(kind, seed * 1000 + number) for kind in KINDS for number in range(per_kind)}
    return {name: Labelled(one.at_s, one.values, one.windows) for name, one in made.items()}


def recorded(file: Labelled) -> list[Block]:
    """Return a file's blocks."""
    recorder = Recorder()
    recorder.extend(file.at_s, file.values)
    return recorder.blocks


def scored(
    files: Mapping[str, Labelled], blocks: Mapping[str, Sequence[Block]], settings: Settings
) -> dict[str, ScoredFile]:
    """Return every file's scores with its windows."""
    found = {}
    for name, file in files.items():
        late = file.at_s < np.maximum.accumulate(np.concatenate(([-np.inf], file.at_s[:-1])))
        found[name] = ScoredFile(Replay(settings).play(len(file.at_s), late, blocks[name]), file.windows)
    return found


def by_folder(files: Mapping[str, ScoredFile]) -> dict[str, list[ScoredFile]]:
    """Return the files by the part of their names before the first slash."""
    folders: dict[str, list[ScoredFile]] = {}
    for name, one in files.items():
        folders.setdefault(name.partition("/")[0], []).append(one)
    return folders


def judged(files: Mapping[str, ScoredFile]) -> Judged:
    """Return what NAB's rule says of all files."""
    return Judged(score(list(files.values())), held_out_score(list(by_folder(files).values())))


def print_kinds(files: Mapping[str, ScoredFile]) -> None:
    """Print the score of every kind at the threshold that is best for all."""
    all_of_them = judged(files)
    threshold = all_of_them.best.threshold
    rows: list[tuple[object, ...]] = []
    for kind, of_kind in by_folder(files).items():
        if not any(one.windows for one in of_kind):
            continue
        one = score(of_kind, threshold=threshold)
        rows.append((kind, f"{one.score:.1f}", f"{one.found} of {one.windows}", one.false_positives))
    best = all_of_them.best
    rows.append(("all", f"{best.score:.1f}", f"{best.found} of {best.windows}", best.false_positives))
    print_table(("kind", "score", "windows found", "false alarms"), rows)
    scored_rows = sum(len(one.scores) - probation(len(one.scores)) for one in files.values())
    print(f"\nthreshold {threshold:.3f}; held out {all_of_them.held_out:.1f}; {scored_rows:,} rows scored")


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="what", required=True)
    kinds = commands.add_parser("kinds", help="the score of every kind")
    ranges = commands.add_parser("sensitivity", help="the score over a range of every constant")
    ranges.add_argument("--data", type=Path, help="folder of NAB with combined_windows.json, judged beside")
    for command in (kinds, ranges):
        command.add_argument("--seed", type=int, nargs="+", default=[1], help="a collection is made by each")
        command.add_argument("--per-kind", type=int, default=6)
        command.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    sets = {f"seed {seed}": collection(seed, arguments.per_kind) for seed in arguments.seed}
    if arguments.what == "sensitivity" and arguments.data is not None:
        sets["NAB"] = read_nab(arguments.data)
    with ProcessPoolExecutor(arguments.jobs) as pool:
        blocks = {
            what: dict(zip(files, pool.map(recorded, files.values()), strict=True)) for what, files in sets.items()
        }
    if arguments.what == "kinds":
        for what, files in sets.items():
            print(f"\n{what}")
            print_kinds(scored(files, blocks[what], Settings()))
        return 0
    rows = []
    for name, values in RANGES.items():
        for value in values:
            settings = with_value(name, value)
            found = [judged(scored(files, blocks[what], settings)) for what, files in sets.items()]
            cells = [_cell(one) for one in found]
            cells.append(" ".join(f"{one.best.threshold:.2f}" for one in found))
            rows.append((name, f"{value:g}" + (" (default)" if value == getattr(Settings(), name) else ""), *cells))
    print_table(("constant", "value", *sets, "thresholds"), rows)
    return 0


def _cell(judged: Judged) -> str:
    """Return the score of a collection, and in brackets what is held out where that is another."""
    best, held_out = f"{judged.best.score:.1f}", f"{judged.held_out:.1f}"
    return best if best == held_out else f"{best} ({held_out})"


if __name__ == "__main__":
    sys.exit(main())
