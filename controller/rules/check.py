"""The background check: every switch's entries are read now and then, and what is not as confirmed is put right."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from controller.datapath.lanes import Urgency
from controller.rules.model import Key
from controller.rules.notices import Notices
from controller.rules.switch_state import FlowDump, OwnerState, Question

CHECK_TIMEOUT_S = 10.0
"""How long a switch has to tell its entries; another switch's turn comes then (`check-timeout`)."""

PATIENCE_INTERVALS = 2.0
"""Intervals after which a switch is read although edits are under way, which then do not count."""


SUSPICION_PAUSE_S = 5.0
"""How long after it was read a switch is read again because something is odd there."""


class _Wanted(NamedTuple):
    """When a switch is to be read out of turn, and whether another app asked for it, which has told all others."""

    due_s: float
    requested: bool


class Checks:
    """Which switch is read next: one at a time, each once in `interval_s` and spread over it; 0 reads none.

    A check compares what a switch tells with what it had confirmed. Keys that were edited meanwhile do not count, so
    neither edits nor checks wait for each other. What differs is taken as what the switch holds, and sent anew. While
    `held`, only what is wanted counts: the rest is to stay. `ask` sends a switch the question, and returns it; it is
    told whether it is this switch's turn, in which case other apps that share the switch may `join`.
    """

    def __init__(
        self,
        switches: Mapping[int, OwnerState],
        mark: Callable[[OwnerState, Key, Urgency], None],
        ask: Callable[[OwnerState, bool, float], Question],
        notices: Notices,
    ) -> None:
        self.interval_s = 0.0
        self.held = False
        self._switches = switches
        self._mark = mark
        self._ask = ask
        self._notices = notices
        self._read_s: dict[int, float] = {}
        self._wanted: dict[int, _Wanted] = {}
        self._due: list[tuple[float, int]] = []
        self._turn_s: float | None = None
        self._asked: int | None = None
        self._asked_s = 0.0

    def was_read(self, dpid: int, now: float) -> None:
        """Take in that a switch told all its entries just now: its turn comes last."""
        self._read_s.pop(dpid, None)
        self._read_s[dpid] = now
        if self._turn_s is None:
            self._turn_s = now

    def forget(self, dpid: int) -> None:
        """Check a switch no more: it has no connection, or is read for another reason."""
        self._read_s.pop(dpid, None)
        self._wanted.pop(dpid, None)
        if self._asked == dpid:
            self._asked = None

    def request(self, dpid: int, now: float) -> None:
        """Have a switch read as soon as no other is asked, whoever's turn it is; unless none is ever checked."""
        wanted = self._wanted.get(dpid)
        if wanted is None or not wanted.requested:
            self._want(dpid, _Wanted(now, True))

    def suspect(self, dpid: int, now: float) -> None:
        """Have a switch read soon that shows signs of lost entries: at most once in `SUSPICION_PAUSE_S`."""
        if dpid not in self._wanted and dpid in self._read_s:
            self._want(dpid, _Wanted(max(now, self._read_s[dpid] + SUSPICION_PAUSE_S), False))

    def _want(self, dpid: int, wanted: _Wanted) -> None:
        if self.interval_s > 0 and dpid in self._read_s:
            self._wanted[dpid] = wanted
            heappush(self._due, (wanted.due_s, dpid))

    def _first_wanted(self) -> tuple[float, int] | None:
        """Return when which switch is read out of turn next; what is wanted no more, or sooner, is left out."""
        while self._due:
            due_s, dpid = self._due[0]
            wanted = self._wanted.get(dpid)
            if wanted is not None and wanted.due_s == due_s:
                return self._due[0]
            heappop(self._due)
        return None

    def next(self) -> float | None:
        """Return when `on_deadline` is due, None for never."""
        if self.interval_s <= 0 or self._turn_s is None:
            return None
        if self._asked is not None:
            return self._asked_s + CHECK_TIMEOUT_S
        if not self._read_s:
            return None
        turn_s = self._turn_s + self.interval_s / len(self._read_s)
        wanted = self._first_wanted()
        return turn_s if wanted is None else min(turn_s, wanted[0])

    def on_deadline(self, now: float) -> None:
        """Read the switch whose turn it is now, if there is one."""
        due_s = self.next()
        if due_s is None or now < due_s:
            return
        if self._asked is not None:
            dpid = self._asked
            self._notices.give(
                "check-timeout", dpid, f"Switch {dpid} did not tell its flow entries in time: it is asked later.", now
            )
            self._switches[dpid].check = None
            self.was_read(dpid, now)
        self._asked = None
        wanted = self._first_wanted()
        if wanted is not None and wanted[0] <= now:
            dpid = wanted[1]
            self._begin(self._switches[dpid], now, requested=self._wanted.pop(dpid).requested)
            return
        self._turn_s = now
        for dpid, read_s in self._read_s.items():
            state = self._switches[dpid]
            if not state.is_busy() or now - read_s >= PATIENCE_INTERVALS * self.interval_s:
                self._begin(state, now, requested=False, is_turn=True)
                return
            self._notices.counters["check-postponed"] += 1

    def join(self, state: OwnerState, xid: int, now: float) -> None:
        """Compare what a switch tells another app too, unless another switch is asked: it is its turn then."""
        if self.interval_s > 0 and self._asked is None and state.dpid in self._read_s:
            state.check = FlowDump(xid, edited=state.under_way())
            self._asked, self._asked_s, self._turn_s = state.dpid, now, now

    def _begin(self, state: OwnerState, now: float, *, requested: bool, is_turn: bool = False) -> None:
        xid, asked = self._ask(state, is_turn, now)
        state.check = FlowDump(xid, edited=state.under_way(), requested=requested, asked=asked)
        self._asked, self._asked_s = state.dpid, now

    def complete(self, state: OwnerState, check: FlowDump, now: float) -> bool:
        """Compare a whole answer: what is missing, altered or nobody's is repaired, and told.

        True where entries were missing and nobody had said so: those of others may be too.
        """
        state.check = None
        self._asked = None
        self.was_read(state.dpid, now)
        self._notices.counters["checks"] += 1
        if check.faulty:
            return False
        installed, edited = state.installed, check.edited
        missing = [key for key in installed if key not in check.entries and key not in edited]
        altered = [
            key for key, rule in check.entries.items() if key not in edited and installed.get(key, rule) != rule
        ]
        extra = [key for key in check.entries if key not in installed and key not in edited]
        for key in missing:
            del installed[key]
        for key in (*altered, *extra):
            installed[key] = check.entries[key]
        if missing or altered or extra:
            state.recount()
        found = {"missing": missing, "altered": altered, "extra": extra}
        if self.held:
            found = {kind: [key for key in keys if state.target(key) is not None] for kind, keys in found.items()}
        for keys in found.values():
            for key in keys:
                self._mark(state, key, Urgency.BULK)
        tell_repaired(self._notices, state.dpid, found, now)
        return bool(found["missing"]) and not check.requested


def tell_repaired(notices: Notices, dpid: int, found: Mapping[str, Sequence[Key]], now: float) -> None:
    """Count and tell what was found at a switch, by kind, and is repaired."""
    counts = {kind: len(keys) for kind, keys in found.items()}
    if not any(counts.values()):
        return
    for kind, count in counts.items():
        notices.counters[f"entries-{kind}"] += count
    parts = [f"{count} {_WORDS[kind]}" for kind, count in counts.items() if count]
    differ = f"differ from what it confirmed ({', '.join(parts)})"
    text = f"The flow entries of switch {dpid} {differ}: they are repaired."
    notices.give("entries-repaired", dpid, text, now, **counts)


_WORDS = {"missing": "missing", "altered": "altered", "extra": "unexpected"}
