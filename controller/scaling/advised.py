"""What is said of a pool of monitors after each interval: how it fared, what is advised, what others would have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple


class Advised(NamedTuple):
    """An interval and what follows from it.

    Attributes
    ----------
    number, interval_s
        Which interval: it began `number` times `interval_s` seconds after 1970.
    monitors, drained
        Monitors at work in it, and those that were left without switches.
    pace
        How many times as long as the policy says monitors wait between two polls.
    gap
        Why nothing can be said of the interval, as a sentence; '' where it can, and only then what follows is known.
    load, load_before
        Work that came, in monitors that it keeps busy, and that of the interval one period before the next one.
    usage, scarcest
        How much is taken of the scarcest resource, as a mean of all monitors, and which one that is.
    lateness, skipped, given_up, is_met
        What 99 of 100 polls did not exceed, in intervals between polls; polls skipped; requests given up; whether the
        goal was met.
    period
        After how many intervals loads repeat; None where none is known.
    learner, rule
        Who advises, and why.
    wanted, wanted_pace
        How many monitors there should be, and their pace.
    expected_lateness, cost_h
        What lateness would become, and monitor hours a day more, or fewer where it is negative.
    withheld
        Why the advice is not acted on, as a sentence; '' where it may be.
    is_ordered
        Whether it is to be done now.
    others
        What each learner would have: monitors.
    placement
        Which monitor would be better on another machine, as a sentence; '' for none.
    outcome
        What became of what was to be done, in sentences; '' where nothing was, or nothing is known yet.
    begun_s
        Since when it is being done, in seconds since 1970; None where it is not.
    """

    number: int
    interval_s: int
    monitors: int
    drained: int
    pace: int
    gap: str = ""
    load: float | None = None
    load_before: float | None = None
    usage: float | None = None
    scarcest: str = ""
    lateness: float | None = None
    skipped: int = 0
    given_up: int = 0
    is_met: bool | None = None
    period: int | None = None
    learner: str = ""
    rule: str = ""
    wanted: int | None = None
    wanted_pace: int | None = None
    expected_lateness: float | None = None
    cost_h: float = 0.0
    withheld: str = ""
    is_ordered: bool = False
    others: Mapping[str, int] = {}
    placement: str = ""
    outcome: str = ""
    begun_s: float | None = None

    @property
    def is_change(self) -> bool:
        """Whether something is to be otherwise than it is."""
        return (self.wanted or self.monitors, self.wanted_pace or self.pace) != (self.monitors, self.pace)

    def text(self) -> str:
        """Return this as a key's value."""
        return json.dumps(self._asdict(), separators=(",", ":"))


def read_advised(text: str) -> Advised | None:
    """Return what a key says; None where it makes no sense."""
    try:
        found = json.loads(text)
        advised = Advised(**{name: found[name] for name in Advised._fields if name in found})
    except (ValueError, TypeError, RecursionError):
        return None
    whole = (advised.number, advised.interval_s, advised.monitors, advised.drained, advised.pace)
    measured = (advised.load, advised.usage, advised.lateness)
    other = (advised.load_before, advised.expected_lateness, advised.wanted, advised.wanted_pace, advised.begun_s)
    reasons = (advised.gap, advised.learner, advised.rule, advised.withheld)
    texts = (*reasons, advised.scarcest, advised.placement, advised.outcome)
    makes_sense = (
        all(type(value) is int for value in (*whole, advised.skipped, advised.given_up))
        and (bool(advised.gap) or None not in measured)
        and all(value is None or type(value) in (int, float) for value in (*measured, *other, advised.period))
        and all(type(text) is str for text in texts)
        and type(advised.others) is dict
        and type(advised.cost_h) in (int, float)
    )
    return advised if makes_sense and advised.interval_s > 0 and advised.number >= 0 else None


def advice_text(advised: Advised) -> str:
    """Return what is advised as a sentence."""
    last = "".join(f" {each}" for each in (advised.placement, advised.outcome) if each)
    if advised.gap:
        return f"Nothing is advised: {advised.gap}{last}"
    if not advised.is_change:
        return f"{_monitors(advised.monitors)} are as many as are needed ({_state(advised)}).{last}"
    cost = f"; {abs(advised.cost_h):g} monitor hours a day {'more' if advised.cost_h > 0 else 'fewer'}"
    what = f"{_monitors(advised.wanted or 0)} in the place of {advised.monitors}"
    if advised.wanted_pace != advised.pace:
        what, cost = f"{_pace(advised.wanted_pace or 1)} in the place of {_pace(advised.pace)}", ""
    late = f"{advised.expected_lateness:.3f} of an interval between polls" if advised.expected_lateness else "unknown"
    withheld = f" Not acted on: {advised.withheld}" if advised.withheld else ""
    return (
        f"Advice: {what} ({_state(advised)}; {advised.learner}: {advised.rule}). 99 of 100 polls would then be late "
        f"by at most {late}{cost}.{withheld}{last}"
    )


def advised_document(advised: Advised) -> dict[str, Any]:
    """Return what operators see of an interval."""
    began_s = advised.number * advised.interval_s
    met = {True: "met", False: "missed", None: "unknown"}[advised.is_met]
    return {
        "interval": advised.number,
        "began_s": began_s,
        "ended_s": began_s + advised.interval_s,
        "slo": met,
        "text": advice_text(advised),
        **{name: value for name, value in advised._asdict().items() if name not in ("number", "is_met", "others")},
        "learners": [{"learner": name, "monitors": count} for name, count in advised.others.items()],
    }


def _monitors(count: int) -> str:
    return f"{count} monitor{'s' if count != 1 else ''}"


def _pace(pace: int) -> str:
    return f"polls {pace} times as far apart as the policy says" if pace > 1 else "polls as the policy says"


def _state(advised: Advised) -> str:
    return (
        f"load {advised.load:.2f} monitors, {advised.scarcest} {advised.usage:.0%} taken, polls late by "
        f"{advised.lateness:.3f}, {advised.skipped} skipped, {advised.given_up} given up"
    )
