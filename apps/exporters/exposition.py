"""The text formats that Prometheus scrapes: its own (0.0.4) and OpenMetrics 1.0."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import accumulate, islice
from typing import NamedTuple, TypeAlias

from controller.histogram import HistogramReading
from controller.snapshot.reader import DATAPATH_IDS
from controller.wire.dpids import format_dpid

TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"

PIECE_SAMPLES = 1024
"""Samples that are written in one go; between two pieces others get their turn."""


class Type(StrEnum):
    """What a metric is."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class MetricFamily(NamedTuple):
    """A metric: its name (a counter's ends in ``_total``), its type, and a sentence about it."""

    name: str
    type: Type
    help: str

    def head(self, *, openmetrics: bool) -> str:
        """Return the lines that precede the metric's samples; OpenMetrics names a counter without ``_total``."""
        name, text = self.name, self.help.replace("\\", "\\\\").replace("\n", "\\n")
        if openmetrics:
            name, text = name.removesuffix("_total"), text.replace('"', '\\"')
        return f"# HELP {name} {text}\n# TYPE {name} {self.type}\n"


def counter(name: str, text: str) -> MetricFamily:
    """Return a counter, which only ever rises but for resets."""
    return MetricFamily(name, Type.COUNTER, text)


def gauge(name: str, text: str) -> MetricFamily:
    """Return a gauge."""
    return MetricFamily(name, Type.GAUGE, text)


def histogram(name: str, text: str) -> MetricFamily:
    """Return a histogram, whose samples are readings."""
    return MetricFamily(name, Type.HISTOGRAM, text)


Labels: TypeAlias = Mapping[str, object] | str | Callable[[], str]
"""Labels with their values, or what `label_set` makes of them, at once or when the sample is written."""

Value: TypeAlias = float | HistogramReading
Metric: TypeAlias = tuple[MetricFamily, Sequence[tuple[Labels, Value]]]
"""A family with samples of it; a histogram's are readings."""


def metric_texts(
    family: MetricFamily, samples: Iterable[tuple[Labels, Value]], *, openmetrics: bool
) -> Iterator[str]:
    """Yield a family's head and samples in pieces of `PIECE_SAMPLES`; nothing where there are none."""
    head, remaining = family.head(openmetrics=openmetrics), iter(samples)
    while piece := list(islice(remaining, PIECE_SAMPLES)):
        yield head + "".join([_sample(family.name, labels, value) for labels, value in piece])
        head = ""


def _sample(name: str, labels: Labels, value: Value) -> str:
    if not isinstance(value, HistogramReading):
        if not isinstance(labels, str):
            labels = labels() if callable(labels) else label_set(labels)
        return f"{name}{labels} {value}\n"
    assert isinstance(labels, Mapping)
    counts = list(accumulate(value.counts))
    bounds = [*(f"{bound:g}" for bound in value.bounds), "+Inf"]
    buckets = [label_set({**labels, "le": bound}) for bound in bounds]
    ends = f"{name}_sum{label_set(labels)} {value.sum}\n{name}_count{label_set(labels)} {counts[-1]}\n"
    return lines(f"{name}_bucket", buckets, counts) + ends


def label_set(labels: Mapping[str, object]) -> str:
    """Return labels as they stand behind a metric's name, values escaped; nothing for none.

    Datapath ids have their 16 hexadecimal digits, as everywhere that people read them.
    """
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_value(name, value)}"' for name, value in labels.items()) + "}"


def _value(name: str, value: object) -> str:
    if name in DATAPATH_IDS and isinstance(value, int):
        return format_dpid(value)
    return escape(str(value))


def escape(value: str) -> str:
    r"""Return a label's value with ``\``, ``"`` and line ends escaped; what is no Unicode becomes ``?``."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return escaped.encode("utf-8", "replace").decode()


def lines(name: str, label_sets: Sequence[str], values: Iterable[float]) -> str:
    """Return one line per sample."""
    return "".join([f"{name}{labels} {value}\n" for labels, value in zip(label_sets, values, strict=True)])
