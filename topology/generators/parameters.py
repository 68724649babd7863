"""Parameters of generators: defaults and bounds in one place, from which the command line and its checks follow."""

from __future__ import annotations

import math
from typing import NamedTuple

from topology.graph import DEFAULT_CAPACITY_BPS

Number = int | float

MAX_HOSTS = 65536
"""Hosts that a generated fabric may have at most."""


def in_words(number: Number) -> str:
    """Return a number as one would type it."""
    return str(int(number) if number == int(number) else number)


class Parameter(NamedTuple):
    """A number that a generator takes; a whole number unless the default is a float."""

    name: str
    default: Number
    lower: Number
    upper: Number
    help: str
    multiple_of: int = 1

    @property
    def whole(self) -> bool:
        """Whether only whole numbers are taken."""
        return isinstance(self.default, int)

    def bounds(self) -> str:
        """Return what is taken, in words."""
        what = "a whole number" if self.whole else "a number"
        if self.multiple_of != 1:
            what = "an even number" if self.multiple_of == 2 else f"a multiple of {self.multiple_of}"
        return f"{what} from {in_words(self.lower)} to {in_words(self.upper)}"

    def check(self, value: object) -> None:
        """Raise ValueError, naming the parameter and its bounds, for a value that is not taken."""
        allowed = int if self.whole else (int, float)
        if (
            isinstance(value, bool)
            or not isinstance(value, allowed)
            or not math.isfinite(value)
            or not self.lower <= value <= self.upper
            or (self.whole and value % self.multiple_of)
        ):
            raise ValueError(f"{self.name}: {value!r} is not {self.bounds()}")


def capacity(default_bps: float = DEFAULT_CAPACITY_BPS) -> Parameter:
    """Return the parameter that every generator has."""
    return Parameter("capacity_bps", default_bps, 1.0, 1e15, "capacity of every link in bits per second")
