"""What every benchmark shares: repeated samples, their median and spread, and a table or JSON of them."""

from __future__ import annotations

import argparse
import json
import math
import mmap
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

TOUCHED_BYTES = 1 << 30


def touch_memory() -> None:
    """Have memory at hand that what is measured next gets when it asks for some.

    A virtual machine gives free pages back to its host. Each that is used again afterwards costs microseconds, which
    what allocates would pay beside what does not, in one run and not in another.
    """
    touched = bytearray(TOUCHED_BYTES)
    touched[:: mmap.PAGESIZE] = bytes(TOUCHED_BYTES // mmap.PAGESIZE)


class Summary(NamedTuple):
    """The median and spread of samples that share a unit."""

    median: float
    first_quartile: float
    third_quartile: float
    minimum: float
    maximum: float
    sample_count: int


def summarise(samples: Sequence[float]) -> Summary:
    """Return the median and quartiles of at least one sample."""
    ordered = sorted(samples)
    if len(ordered) == 1:
        (only,) = ordered
        return Summary(only, only, only, only, only, 1)
    first, middle, third = statistics.quantiles(ordered, n=4, method="inclusive")
    return Summary(middle, first, third, ordered[0], ordered[-1], len(ordered))


def percentile(samples: Sequence[float], percent: float) -> float:
    """Return the nearest-rank percentile (0 to 100) of at least one sample."""
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def time_per_call_us(
    contenders: Mapping[str, Callable[[], object]], *, repeats: int = 15, sample_s: float = 0.02
) -> dict[str, list[float]]:
    """Return samples of the microseconds per call of each contender, taken in turn so that noise meets them alike."""
    calls = {name: _calls_within(function, sample_s) for name, function in contenders.items()}
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repeats):
        for name, function in contenders.items():
            rounds = range(calls[name])
            start = time.perf_counter()
            for _ in rounds:
                function()
            samples[name].append((time.perf_counter() - start) / calls[name] * 1e6)
    return samples


def _calls_within(function: Callable[[], object], duration_s: float) -> int:
    """Return how many calls take about `duration_s`, after one warm-up."""
    calls = 1
    while True:
        start = time.perf_counter()
        for _ in range(calls):
            function()
        elapsed_s = time.perf_counter() - start
        if elapsed_s > duration_s / 4:
            return max(1, round(calls * duration_s / elapsed_s))
        calls *= 4


def print_table(heading: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a Markdown table; floats with three significant digits."""
    cells = [[str(cell) for cell in heading]] + [[_cell(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(heading))]
    cells.insert(1, ["-" * width for width in widths])
    for row in cells:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |")


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return str(value)


def print_json(document: Any) -> None:
    """Print a document as JSON; summaries as objects."""
    print(json.dumps(_plain(document), indent=2))


def _plain(value: Any) -> Any:
    if isinstance(value, Summary):
        return value._asdict()
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


class Tally:
    """Bytecodes and calls while it traces, by the code that they are of."""

    def __init__(self) -> None:
        self.bytecodes, self.calls = Counter[CodeType](), Counter[CodeType]()

    def trace(self, frame: FrameType, _event: str, _argument: Any) -> Callable[..., Any]:
        """Count a call, and have its bytecodes counted."""
        self.calls[frame.f_code] += 1
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._trace_code

    def _trace_code(self, frame: FrameType, event: str, _argument: Any) -> Callable[..., Any]:
        self.bytecodes[frame.f_code] += event == "opcode"
        return self._trace_code


def tallied(does: Callable[[], object]) -> tuple[int, int]:
    """Return how many bytecodes and calls something takes, without those of the benchmarks themselves."""
    tally = Tally()
    sys.settrace(tally.trace)
    try:
        does()
    finally:
        sys.settrace(None)
    here = str(Path(__file__).parent)
    codes = [code for code in tally.calls if not code.co_filename.startswith(here)]
    return sum(tally.bytecodes[code] for code in codes), sum(tally.calls[code] for code in codes)


def names_of(known: Iterable[str]) -> Callable[[str], list[str]]:
    """Return what reads an option of names with commas between, and refuses those that are not known."""
    all_known = list(known)

    def read(text: str) -> list[str]:
        names = text.split(",")
        for name in names:
            if name not in all_known:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(all_known)}")
        return names

    return read


class Measurement(NamedTuple):
    """Samples of one quantity under a name."""

    name: str
    unit: str
    samples: Sequence[float]


def report(measurements: Sequence[Measurement], *, as_json: bool, source: str) -> None:
    """Print the median and spread of each quantity, as a table or as one JSON document."""
    rows = [(m.name, m.unit, summarise(m.samples), percentile(m.samples, 99)) for m in measurements]
    if as_json:
        document = {name: {"unit": unit, **summary._asdict(), "p99": p99} for name, unit, summary, p99 in rows}
        print(json.dumps({"benchmark": source, "measurements": document}))
        return
    print_table(
        ("quantity", "unit", "median", "1st quartile", "3rd quartile", "min", "max", "p99", "samples"),
        [
            (name, unit, s.median, s.first_quartile, s.third_quartile, s.minimum, s.maximum, p99, s.sample_count)
            for name, unit, s, p99 in rows
        ],
    )
