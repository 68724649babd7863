"""The parameters of a family, read from plain values; the policy file declares them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from controller.config.declarations import Setting, SettingType, declared
from controller.config.read import bound
from controller.config.settings import MINUTES_ABOVE, MOST_DAYS, PortParameters

DAYS = "days_to_average_utilization"
DAY_S = 86400.0
_NOT_A_LETTER = re.compile(r"[^a-z0-9]")
_ALSO = {
    "volumecoefficient": "metric_volume_coefficient",
    "k": "weight_for_exponential_moving_average",
    "emaweight": "weight_for_exponential_moving_average",
    "daystoaverage": DAYS,
}


class ParameterFault(NamedTuple):
    """One parameter that cannot be taken: its name, the value given, and what it must be."""

    parameter: str
    value: Any
    must: str

    def __str__(self) -> str:
        return f"{self.parameter}: {self.value!r} {self.must}"


class ParameterError(ValueError):
    """Parameters out of their bounds, all of them."""

    def __init__(self, faults: tuple[ParameterFault, ...]) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = faults


def _key(name: str) -> str:
    return _NOT_A_LETTER.sub("", name.lower().replace("utilisation", "utilization")).removesuffix("pct")


SETTINGS: dict[str, Setting] = {
    name: entry for name, entry in declared(PortParameters).items() if isinstance(entry, Setting)
}
_NAMES = {_key(name): name for name in SETTINGS} | _ALSO


def read_parameters(given: Mapping[str, Any]) -> PortParameters:
    """Return checked parameters.

    Parameters
    ----------
    given
        Values by name. A name is that of the policy file or of the published table in any spelling:
        ``Port Utilization Floor``, ``portUtilizationFloor`` and ``port_utilization_floor`` are one. None stands for
        the default, and so does ``"unlimited"`` for a ceiling.

    Returns
    -------
    PortParameters
        The default for what is not given.

    Raises
    ------
    ParameterError
        A name is unknown or given twice, a value is no number or out of its bounds; every fault is told.
    """
    faults: list[ParameterFault] = []
    values: dict[str, Any] = {}
    for given_name, value in given.items():
        name = _NAMES.get(_key(given_name))
        if name is None:
            faults.append(ParameterFault(given_name, value, "is of no known parameter"))
            continue
        if name in values:
            faults.append(ParameterFault(given_name, value, f"is given a second time for {name}"))
            continue
        entry = SETTINGS[name]
        if value is None or (entry.optional and value == "unlimited"):
            values[name] = entry.default
            continue
        must = _fault(name, entry, value)
        if must:
            faults.append(ParameterFault(name, value, must))
        values[name] = value
    if faults:
        raise ParameterError(tuple(faults))
    return PortParameters(**values)


def _fault(name: str, entry: Setting, value: Any) -> str:
    """Return what is wrong with a value, '' where nothing is."""
    whole = entry.type is SettingType.INTEGER
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return "is not a whole number" if whole else "is not a number"
    if whole and value != int(value):
        return "is not a whole number"
    if name == DAYS and not (1 <= value <= MOST_DAYS or value > MINUTES_ABOVE):
        return f"is not within 1 and {MOST_DAYS} (days), nor above {MINUTES_ABOVE} (minutes)"
    lower, upper = entry.lower or 0, entry.upper or 0
    return "" if lower <= value <= upper else f"is not within {bound(lower)} and {bound(upper)}"


def averaging_period_s(parameters: PortParameters) -> float:
    """Return the time over which samples are averaged, in seconds: days, or the minutes above 10000."""
    days = parameters.days_to_average_utilization
    return (days - MINUTES_ABOVE) * 60.0 if days > MINUTES_ABOVE else days * DAY_S
