"""What is advised about the number of monitors, being done: one thing at a time, again where it fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from apps.cluster.scaling_orders import ScalingOrders
from apps.system import system_threading
from controller.scaling.advised import Advised

FIRST_WAIT_S, MOST_WAIT_S = 5.0, 300.0
"""How soon the program is tried again after it failed once, and after many times: each time after twice as long."""


class WorkTold(NamedTuple):
    """What became of an advice.

    Attributes
    ----------
    advised
        The advice, with its outcome as a sentence, and since when it is being done.
    problems
        What went wrong, as sentences.
    is_over
        Whether nothing more is tried.
    """

    advised: Advised
    problems: tuple[str, ...] = ()
    is_over: bool = False


class _Task:
    """An advice that is being done, or that waits for another try."""

    def __init__(self, advised: Advised, chosen: Sequence[str], drained: Sequence[str]) -> None:
        self.advised = advised
        self.chosen = tuple(chosen)
        self.drained = tuple(drained)
        self.is_dropped = system_threading.Event()

    @property
    def wanted(self) -> int:
        return self.advised.wanted or self.advised.monitors


class ScalingWork:
    """Has what is advised done on a thread of its own.

    Parameters
    ----------
    orders
        Does it.
    may_act
        Whether this monitor is still the one that divides, as the store says; None where the store is silent. Asked
        before each further try.
    tell
        Told what becomes of it, before each further run and after each.
    waits_s
        `FIRST_WAIT_S` and `MOST_WAIT_S`, unless it is a test.

    Attributes
    ----------
    ended
        Monitors that were drained and that the program has been told of without failing.
    """

    def __init__(
        self,
        orders: ScalingOrders,
        may_act: Callable[[], bool | None],
        tell: Callable[[WorkTold], object],
        waits_s: tuple[float, float] = (FIRST_WAIT_S, MOST_WAIT_S),
    ) -> None:
        self.ended: set[str] = set()
        self._orders = orders
        self._may_act = may_act
        self._tell = tell
        self._waits_s = waits_s
        self._turn = system_threading.Lock()
        self._task: _Task | None = None

    @property
    def waiting(self) -> Advised | None:
        """The advice that waits for another try, or is being done."""
        task = self._task
        return None if task is None else task.advised

    @contextmanager
    def held(self) -> Iterator[bool]:
        """Have nothing be done meanwhile; yields False where something is."""
        is_held = self._turn.acquire(blocking=False)
        try:
            yield is_held
        finally:
            if is_held:
                self._turn.release()

    def begin(self, advised: Advised, chosen: Sequence[str], drained: Sequence[str] = ()) -> None:
        """Have an advice done, in the place of one that waits, when nobody holds this.

        `chosen` are the monitors to be drained or to have their part again; `drained` those that were drained before
        and are to be ended.
        """
        self.drop()
        self.ended -= set(chosen)
        task = self._task = _Task(advised, chosen, drained)
        system_threading.Thread(target=self._run, args=(task,), name="scaling-order", daemon=True).start()

    def goes_on(self, advised: Advised, chosen: Sequence[str]) -> bool:
        """Tell whether what waits is what is advised now too; the further tries are then of this advice.

        One that is not is dropped, unless nothing is advised now.
        """
        task = self._task
        if task is None or advised.wanted is None:
            return task is not None
        is_other = task.wanted != advised.wanted or advised.wanted_pace != advised.pace
        if is_other or (chosen and tuple(chosen) != task.chosen):
            self.drop()
            return False
        task.advised = advised._replace(outcome=task.advised.outcome)
        return True

    def drop(self) -> None:
        """Try nothing again."""
        task, self._task = self._task, None
        if task is not None:
            task.is_dropped.set()

    # On the thread

    def _run(self, task: _Task) -> None:
        try:
            with self._turn:
                failed = self._prepared(task)
            tries = 1
            while failed and not task.is_dropped.wait(self._wait_s(tries)):
                with self._turn:
                    may_act = self._may_act()
                    if task.is_dropped.is_set() or may_act is False:
                        break
                    if may_act:
                        tries += 1
                        failed = self._tried(task, tries)
        finally:
            if self._task is task:
                self._task = None

    def _prepared(self, task: _Task) -> bool:
        """Do what comes before the program, and run it once; return whether it is to be tried again."""
        if task.is_dropped.is_set():
            return False
        needs_program, problems = self._orders.prepare(task.advised, task.chosen)
        if task.wanted < task.advised.monitors and needs_program:
            task.drained = (*task.chosen, *task.drained)
        if needs_program or (task.drained and not problems):
            return self._tried(task, 1, tuple(problems))
        text = " ".join(("It was not done:", *problems)) if problems else "It was done."
        self._said(task, text, tuple(problems), True)
        return False

    def _tried(self, task: _Task, tries: int, problems: tuple[str, ...] = ()) -> bool:
        """Run the program; return whether it failed."""
        left = self._orders.left(task.wanted, task.drained)
        if left is None:
            self._said(task, "Nothing is left to be done.", problems, True)
            return False
        if tries > 1:
            began = task.advised._replace(begun_s=time.time(), outcome=f"The program is run, try {tries}.")
            self._tell(WorkTold(began))
        problem = self._orders.run(task.wanted, left)
        if not problem:
            self.ended |= set(left)
            again = f" at try {tries}" if tries > 1 else ""
            self._said(task, f"It was done{again}.", problems, True)
            return False
        again = f"It is tried again in {self._wait_s(tries):g} s, unless other advice comes."
        self._said(task, f"Try {tries} failed: {problem} {again}", (*problems, f"{problem} {again}"), False)
        return True

    def _wait_s(self, tries: int) -> float:
        first_s, most_s = self._waits_s
        return min(first_s * 2.0 ** min(tries - 1, 30), most_s)

    def _said(self, task: _Task, outcome: str, problems: tuple[str, ...], is_over: bool) -> None:
        task.advised = task.advised._replace(begun_s=None, outcome=outcome)
        self._tell(WorkTold(task.advised, problems, is_over))
