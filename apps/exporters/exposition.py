"""The text formats that Prometheus scrapes: its own (0.0.4) and OpenMetrics 1.0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


class Type(StrEnum):
    """What a metric is."""

    COUNTER = "counter"
    GAUGE = "gauge"


class Family(NamedTuple):
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


def counter(name: str, text: str) -> Family:
    """Return a counter, which only ever rises but for resets."""
    return Family(name, Type.COUNTER, text)


def gauge(name: str, text: str) -> Family:
    """Return a gauge."""
    return Family(name, Type.GAUGE, text)


def label_set(labels: Mapping[str, object]) -> str:
    """Return labels as they stand behind a metric's name, values escaped; nothing for none."""
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{escape(str(value))}"' for name, value in labels.items()) + "}"


def escape(value: str) -> str:
    r"""Return a label's value with ``\``, ``"`` and line ends escaped; what is no Unicode becomes ``?``."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return escaped.encode("utf-8", "replace").decode()


def lines(name: str, label_sets: Sequence[str], values: Iterable[float]) -> str:
    """Return one line per sample."""
    return "".join([f"{name}{labels} {value}\n" for labels, value in zip(label_sets, values, strict=True)])
