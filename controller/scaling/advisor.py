"""What is advised about a pool of monitors, from what each tells of its load; without clock, store and processes."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Set
from typing import NamedTuple

from controller.performance.poll_load import late_of_99
from controller.scaling.advised import Advised
from controller.scaling.learners import DEFAULT_LEARNER, DEFAULT_PARAMETERS, LEARNERS, LearnerParameters, make_learner
from controller.scaling.loads import RESOURCES, MemberLoad
from controller.scaling.model import Chance, PoolBounds, PoolReading, ScalingAdvice, TierReading
from controller.scaling.period import period_of
from controller.scaling.table import AdvisorTable, fitting, taught

TIER = "monitors"
"""What the pool is called where a program is told of it."""

REMEMBERED_INTERVALS = 4096
"""Intervals whose load is remembered: two weeks of five minutes each."""

JUDGED_INTERVALS = 288
"""Intervals of which it is told in how many the goal was met."""

PERIOD_EVERY = 12
"""After so many intervals it is looked anew after how many of them loads repeat."""

APART_INTERVALS = 2
"""Nothing is done twice within so many intervals."""

MOST_PACE = 8
"""Polls become at most so many times as rare as the policy says."""

FULL = 0.99
"""Beyond it lateness is what waits, not what is left."""

CROWDED = 0.5
"""From so much of the processor on a monitor is told to be moved that is beside the controller which leads."""

BUSY = 0.85
"""How busy monitors may be after polls have become twice as frequent again."""


class PoolInterval(NamedTuple):
    """An interval that is over.

    Attributes
    ----------
    number
        Which one.
    loads
        What monitors told of it.
    at_work, drained
        Monitors that are there now, without and with an order to have no switches.
    pace
        How many times as long as the policy says they wait between two polls.
    disturbed
        What is being changed by others, as a sentence; '' for nothing.
    beside_leader
        Monitors on the machine of the controller that leads.
    early
        Monitors that told of the interval well before it was over by the clock of the one that divides.
    """

    number: int
    loads: Mapping[str, MemberLoad]
    at_work: Set[str]
    drained: Set[str]
    pace: int = 1
    disturbed: str = ""
    beside_leader: Set[str] = frozenset()
    early: Set[str] = frozenset()


class AdvisorSettings(NamedTuple):
    """How is advised; names, units and bounds are those of the policy's section `scaling`."""

    interval_s: int
    learner: str = DEFAULT_LEARNER
    slo_lateness: float = 0.25
    bounds: PoolBounds = PoolBounds(2, 16)
    parameters: LearnerParameters = DEFAULT_PARAMETERS
    applies: bool = False


class Advisor:
    """Follows a pool interval by interval.

    Every learner sees every interval, so that it can be told what each would have advised; one of them is gone by.

    Parameters
    ----------
    settings
        How is advised.
    chance
        What learners draw by.
    table
        What was learnt before.
    """

    def __init__(self, settings: AdvisorSettings, chance: Chance, table: AdvisorTable | None = None) -> None:
        self.settings = settings
        self.learners = {name: make_learner(name, chance, settings.parameters) for name in LEARNERS}
        table = table or AdvisorTable()
        taught(self.learners, table)
        if table.interval_s not in (None, settings.interval_s):
            table = AdvisorTable()  # whose numbers are of other intervals
        self._loads = dict(table.loads[-REMEMBERED_INTERVALS:])
        self._met = deque(table.met, JUDGED_INTERVALS)
        self._acted = table.acted
        self._period = table.period
        self._period_at = 0
        self._turn = 0
        self._former: tuple[int, dict[str, str]] | None = None
        self._numbers: dict[str, int] = {}
        self._is_broken = True

    @property
    def met_ratio(self) -> float | None:
        """In what part of the latest intervals the goal was met; None where nothing is known of any."""
        return sum(self._met) / len(self._met) if self._met else None

    def table(self) -> str:
        """Return what is to outlast this process, as text of at most `TABLE_BYTES`."""
        past = tuple(self._loads.items()), tuple(self._met), self._acted, self._period
        known = AdvisorTable(*past, interval_s=self.settings.interval_s)
        return fitting(known, self.learners, self.settings.learner)

    def may_act(self, number: int) -> bool:
        """Tell whether something may be done after an interval, since nothing was done shortly before."""
        return self._acted is None or not 0 <= number - self._acted < APART_INTERVALS

    def take(self, interval: PoolInterval) -> Advised:
        """Take in an interval and return what follows from it."""
        settings, count = self.settings, len(interval.at_work)
        said = Advised(interval.number, settings.interval_s, count, len(interval.drained), interval.pace)
        gap, is_change = self._gap(interval)
        self._numbers = {name: load.number for name, load in interval.loads.items()}
        runs = {name: interval.loads[name].incarnation for name in interval.at_work if name in interval.loads}
        self._former = (interval.number, runs)
        if gap:
            self._is_broken = self._is_broken or not is_change
            return said._replace(gap=gap)
        self._turn += 2 if self._is_broken else 1
        self._is_broken = False
        loads = [interval.loads[name] for name in sorted(interval.at_work)]
        reading = self._reading(interval, loads)
        self._met.append(reading.is_met)
        said = self._state(said, reading, loads)._replace(placement=_placement(interval))
        advices = {name: learner.advise(reading) for name, learner in self.learners.items()}
        bounds = settings.bounds
        held = {name: bounds.held(reading, advice) for name, advice in advices.items()}
        said = said._replace(others={name: count + (each.change if each else 0) for name, each in held.items()})
        return self._advised(said, reading, advices[settings.learner], held[settings.learner], interval)

    # Parts

    def _gap(self, interval: PoolInterval) -> tuple[str, bool]:
        """Return why nothing can be said of an interval, and whether that is no more than that members changed."""
        former, self_number = self._former, interval.number
        if interval.disturbed:
            return interval.disturbed, False
        if not interval.at_work:
            return "No monitor is at work.", False
        names = sorted(interval.at_work)
        others = [name for name in names if name in interval.loads and self._differs(interval.loads[name])]
        if others:
            own = self.settings.interval_s
            return f"{', '.join(others)} goes by another scaling.interval_s than the {own} s here.", False
        if clocks := self._clocks(interval):
            return clocks, False
        silent = [name for name in names if name not in interval.loads or interval.loads[name].number != self_number]
        if silent:
            return f"{', '.join(silent)} told nothing of the interval.", False
        runs = {name: interval.loads[name].incarnation for name in names}
        if former is not None and former[0] + 1 == self_number and former[1] != runs:
            return "Members of the pool changed in the interval.", True
        partial = [name for name in names if not interval.loads[name].is_whole]
        if partial:
            return f"{', '.join(partial)} came in the interval.", True
        if any(interval.loads[name].pace != interval.pace for name in names):
            return "The time between polls changed in the interval.", True
        return "", False

    def _clocks(self, interval: PoolInterval) -> str:
        """Return which clocks differ from that of the monitor that divides, as a sentence; '' for none.

        One that is behind has told something since the interval before, and not of this one.
        """
        ahead, behind = [], []
        for name in sorted(interval.at_work & interval.loads.keys()):
            number = interval.loads[name].number
            if number > interval.number or (name in interval.early and number == interval.number):
                ahead.append(name)
            elif number < interval.number and self._numbers.get(name, number) != number:
                behind.append(name)
        for names, how in ((ahead, "ahead of"), (behind, "behind")):
            if names:
                are = "The clock of {} is" if len(names) == 1 else "The clocks of {} are"
                return f"{are.format(', '.join(names))} {how} that of the monitor that divides: have them set alike."
        return ""

    def _differs(self, load: MemberLoad) -> bool:
        return load.interval_s != self.settings.interval_s

    def _reading(self, interval: PoolInterval, loads: list[MemberLoad]) -> PoolReading:
        """Return the interval as learners see it, and remember its load."""
        lateness: Counter[int] = Counter()
        for each in loads:
            lateness.update(each.latenesses)
        load = sum(each.load for each in loads)
        # At twice the pace between polls half the work comes: what is remembered is what the policy asks for.
        self._loads[interval.number] = round(load * interval.pace, 4)
        while len(self._loads) > REMEMBERED_INTERVALS:
            del self._loads[next(iter(self._loads))]
        if interval.number >= self._period_at:
            self._period = period_of(self._loads, self.settings.interval_s)
            self._period_at = interval.number + PERIOD_EVERY
        before = None if self._period is None else self._loads.get(interval.number + 1 - self._period)
        errors = sum(each.skipped + each.given_up for each in loads)
        usages = tuple(each.usage for each in loads)
        tier = TierReading(len(loads), load, usages, late_of_99(lateness), float(errors))
        next_ = None if before is None else (before / interval.pace,)
        return PoolReading(self._turn, (tier,), self.settings.slo_lateness, next_)

    def _state(self, said: Advised, reading: PoolReading, loads: list[MemberLoad]) -> Advised:
        tier = reading.tiers[0]
        means = [sum(each.parts[at] for each in loads) for at in range(len(RESOURCES))]
        return said._replace(
            load=round(tier.load, 3),
            load_before=None if reading.load_next is None else round(reading.load_next[0], 3),
            usage=round(reading.usage, 4),
            scarcest=RESOURCES[means.index(max(means))],
            lateness=round(reading.lateness, 4),
            skipped=sum(each.skipped for each in loads),
            given_up=sum(each.given_up for each in loads),
            is_met=reading.is_met,
            period=self._period,
            learner=self.settings.learner,
            wanted=tier.members,
            wanted_pace=said.pace,
        )

    def _advised(
        self,
        said: Advised,
        reading: PoolReading,
        advice: ScalingAdvice | None,
        held: ScalingAdvice | None,
        interval: PoolInterval,
    ) -> Advised:
        """Return what is advised, and whether it is to be done."""
        pace, count = interval.pace, said.monitors
        load, change = reading.tiers[0].load, 0 if held is None else held.change
        rule = "" if advice is None else advice.reason
        lacking, spare = self.settings.bounds.least - count, count - self.settings.bounds.limit
        if lacking > max(change, 0):
            rule = f"there are to be at least {self.settings.bounds.least} monitors"
            said = said._replace(rule=rule, wanted=count + lacking, cost_h=24.0 * lacking)
            return self._ordered(said, load / (count + lacking), interval)
        if spare > max(-change, 0):
            rule = f"there are to be at most {self.settings.bounds.limit} monitors"
            said = said._replace(rule=rule, wanted=count - spare, cost_h=-24.0 * spare)
            return self._ordered(said, load / (count - spare), interval)
        if advice is not None and advice.change > 0 and held is None:
            if pace >= MOST_PACE:
                return said._replace(rule=f"{rule}, and neither monitors nor time between polls are left")
            rule = f"{rule}, and no more than {self.settings.bounds.limit} monitors may be: polls are to be rarer"
            return self._ordered(said._replace(rule=rule, wanted_pace=2 * pace), load / 2 / count, interval)
        if pace > 1 and change <= 0:
            if 2 * load > BUSY * count:
                return said
            rule = f"polls twice as frequent would keep monitors {2 * load / count:.0%} busy"
            return self._ordered(said._replace(rule=rule, wanted_pace=pace // 2), 2 * load / count, interval)
        if not change:
            is_least = advice is not None and advice.change < 0
            least = f"There are to be at least {self.settings.bounds.least} monitors." if is_least else ""
            return said._replace(withheld=least, rule=rule)
        said = said._replace(rule=rule, wanted=count + change, cost_h=24.0 * change)
        return self._ordered(said, load / (count + change), interval)

    def _ordered(self, said: Advised, usage_then: float, interval: PoolInterval) -> Advised:
        """Tell what becomes of lateness, and whether what is advised may be done now."""
        left, left_then = (1 - min(usage, FULL) for usage in (said.usage or 0.0, usage_then))
        expected = None if said.lateness is None else round(said.lateness * left / left_then, 4)
        said = said._replace(expected_lateness=expected)
        if not self.settings.applies:
            return said
        if not self.may_act(interval.number):
            ago = "in this interval" if self._acted == interval.number else "in the interval before"
            return said._replace(withheld=f"Something was done {ago} already.")
        self._acted = interval.number
        return said._replace(is_ordered=True)


def _placement(interval: PoolInterval) -> str:
    """Return which monitors take processor time on the machine of who leads, as a sentence; '' for none."""
    beside = interval.at_work & interval.beside_leader
    crowded = sorted(name for name in beside if interval.loads[name].cpu >= CROWDED)
    if not crowded:
        return ""
    most = max(interval.loads[name].cpu for name in crowded)
    return (
        f"{', '.join(crowded)} runs on the machine of the controller that leads and takes {most:.0%} of a processor "
        "there: move it to another one."
    )
