"""How many edits a switch is sent at once, from how long it takes to confirm them.

A switch confirms n edits after T = r + n / c seconds: r is the way there and back with what the switch does for a
barrier, c its rate of edits. With one batch at a time, w edits each, it does w / (r + w / c) of them in a second, and
an edit that comes meanwhile waits for up to two batches. w = k r c gives k / (k + 1) of c, and batches of (k + 1) r.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from controller.config.edit_settings import Edits

START_EDITS = 16
"""Edits of the first batch after a switch has connected. So few are never the reason why a connection is lost."""

LEAST_EDITS = 4
"""Window below which only `delay_s` and failures lead."""

ROUND_TRIPS = 9.0
"""k: a window takes a switch as many times its r to carry out."""

GROWTH = 1.5
"""How much larger than the one before a batch is at most."""

SHRINKAGE = 0.5
"""How much smaller a window is at least than the one before, however short the line says that it is to be."""

FORGETTING = 0.98
"""Weight of a batch in the line as against the one after it."""

PROBE_INTERVAL = 16
"""One batch among so many has a quarter of the window: a line cannot be told from batches of one size."""

STALL = 3.0
"""A batch that takes so many times as long as the line says was held up: it counts as if it had taken no longer."""

STALLS_IN_A_ROW = 2
"""From here on it is no stall: the switch has changed, and what was known of it counts for little."""

RECOVERY = 1.005
"""How much a ceiling that was halved rises with each batch that is confirmed."""

AIMD_STEP = 8
"""Edits that `aimd` adds with each batch that is confirmed in time."""

LOSS_REMEMBERED_S = 86400.0
"""How long a size at which a connection was lost, larger than any before, is not tried again."""

WINDOWS_BOUND = 16384
"""Switches that are remembered while they have no connection; of more, those not seen longest are forgotten."""

_MICROSECOND = 1e-6


class FittedLine:
    """The line T = r + n / c through the batches of one switch, by least squares with forgetting."""

    __slots__ = ("_edits", "_edits2", "_edits_time", "_stalls", "_time", "_weight", "delay_s", "edit_s")

    def __init__(self) -> None:
        self.delay_s = 0.0
        self.edit_s = 0.0
        self._weight = self._edits = self._edits2 = self._time = self._edits_time = 0.0
        self._stalls = 0

    def take(self, edits: int, took_s: float) -> None:
        """Take in that so many edits were confirmed after so long."""
        took_s = max(took_s, _MICROSECOND)
        keep = FORGETTING
        if not self._weight:
            self.delay_s = took_s / 2
        else:
            expected_s = self.delay_s + edits * self.edit_s
            if took_s > STALL * expected_s or took_s < expected_s / STALL:
                self._stalls += 1
                if self._stalls < STALLS_IN_A_ROW:
                    took_s = min(took_s, STALL * expected_s)
                else:
                    keep = 0.0
            else:
                self._stalls = 0
        self._weight = keep * self._weight + 1
        self._edits = keep * self._edits + edits
        self._edits2 = keep * self._edits2 + edits * edits
        self._time = keep * self._time + took_s
        self._edits_time = keep * self._edits_time + edits * took_s
        self._fit()

    def _fit(self) -> None:
        weight = self._weight
        edits, time_s = self._edits / weight, self._time / weight
        variance = self._edits2 / weight - edits * edits
        if variance > 0.01 * edits * edits:
            edit_s = (self._edits_time / weight - edits * time_s) / variance
        else:
            edit_s = (time_s - self.delay_s) / edits
        self.edit_s = min(max(edit_s, 0.01 * time_s / edits), 0.99 * time_s / edits)
        self.delay_s = time_s - self.edit_s * edits


class Window:
    """How many edits a switch is sent at once: `size`, which here stays as it is (`fixed`)."""

    __slots__ = ("size",)

    def __init__(self, settings: Edits) -> None:
        self.size = settings.at_once

    def use(self, settings: Edits) -> None:
        """Go by other settings from here on."""
        self.size = settings.at_once

    def restart(self) -> None:
        """Begin with a small batch: the switch has connected again, and may not be what it was."""

    def confirmed(self, edits: int, took_s: float, now: float) -> None:
        """Take in that a batch was confirmed, so long after it was sent."""

    def failed(self, edits: int) -> None:
        """Take in that a batch was too much: it was not answered, or edits of it were refused that later were not."""

    def lost(self, edits: int, now: float) -> None:
        """Take in that the connection ended with a batch under way."""


class AdaptiveWindow(Window):
    """A window with a ceiling: halved where a batch fails, rising again with each that is confirmed.

    Batches of less than a quarter of `size` say nothing of the window: nobody needs to tell of them. Where a
    connection ended with a batch larger than any that was confirmed before, the largest that was is the bound for a
    day: a switch that cannot hold more is not asked to again.
    """

    __slots__ = ("_bound", "_bound_until_s", "_ceiling", "_held", "_settings", "_window")

    def __init__(self, settings: Edits) -> None:
        super().__init__(settings)
        self._held = START_EDITS
        self._bound: int | None = None
        self._bound_until_s = 0.0
        self._window = float(START_EDITS)
        self.use(settings)

    def use(self, settings: Edits) -> None:
        """Go by other settings from here on."""
        self._settings = settings
        self._ceiling = float(settings.at_once)
        self._resize(self._window)

    def restart(self) -> None:
        """Begin with a small batch: the switch has connected again, and may not be what it was."""
        self._resize(min(self._window, START_EDITS))

    def confirmed(self, edits: int, took_s: float, now: float) -> None:
        """Take in that a batch was confirmed, so long after it was sent."""
        if not self._counts(edits):
            return
        self._held = max(self._held, edits)
        self._ceiling = min(RECOVERY * self._ceiling, float(self._settings.at_once))
        if self._bound is not None and now >= self._bound_until_s:
            self._bound = None
        self._learn(edits, took_s)

    def failed(self, edits: int) -> None:
        """Take in that a batch was too much: it was not answered, or edits of it were refused that later were not."""
        if self._counts(edits):
            self._ceiling = max(min(self._ceiling, edits / 2), 1.0)
            self._resize(self._window)

    def lost(self, edits: int, now: float) -> None:
        """Take in that the connection ended with a batch under way."""
        if edits > self._held:
            self._bound, self._bound_until_s = self._held, now + LOSS_REMEMBERED_S
        self.failed(edits)

    def _counts(self, edits: int) -> bool:
        return 4 * edits >= self.size

    def _learn(self, edits: int, took_s: float) -> None:
        """Find the size of the next batch."""
        raise NotImplementedError

    def _resize(self, wanted: float) -> None:
        bound = self._ceiling if self._bound is None else min(self._ceiling, self._bound)
        self._window = max(min(wanted, bound), 1.0)
        self.size = int(self._window)


class AimdWindow(AdaptiveWindow):
    """Some edits more with each full batch that is confirmed in time; half as many where one is late or fails."""

    __slots__ = ()

    def _learn(self, edits: int, took_s: float) -> None:
        if took_s > self._settings.delay_s:
            self._resize(edits / 2)
        elif edits >= self.size:
            self._resize(self._window + AIMD_STEP)


class LineWindow(AdaptiveWindow):
    """As many edits as make the switch spend k times its delay on them, but no more than `delay_s`."""

    __slots__ = ("_batches", "_line")

    def __init__(self, settings: Edits) -> None:
        self._line = FittedLine()
        self._batches = 0
        super().__init__(settings)

    def _learn(self, edits: int, took_s: float) -> None:
        line, window = self._line, self._window
        line.take(edits, took_s)
        self._batches += edits >= self.size
        wanted = max(LEAST_EDITS, ROUND_TRIPS * line.delay_s / line.edit_s)
        wanted = min(wanted, self._settings.delay_s / line.edit_s)
        grown = GROWTH * window if edits >= int(window) else window
        self._resize(min(max(wanted, SHRINKAGE * window), grown))
        if self._batches % PROBE_INTERVAL == PROBE_INTERVAL - 1:
            self.size = max(self.size // 4, 1)


WINDOWS: Mapping[str, Callable[[Edits], Window]] = MappingProxyType(
    {"line": LineWindow, "aimd": AimdWindow, "fixed": Window}
)
"""The kinds of windows, by what the policy calls them."""


class Windows:
    """The windows of the switches of one app, which outlive connections: what was learnt of a switch is kept."""

    def __init__(self, settings: Edits) -> None:
        self._settings = settings
        self._windows: dict[int, Window] = {}

    def of(self, dpid: int) -> Window:
        """Return the window of a switch."""
        return self._windows.get(dpid) or self.connected(dpid)

    def connected(self, dpid: int) -> Window:
        """Take in that a switch is there, which is remembered for longest then, and return its window."""
        window = self._windows.pop(dpid, None) or WINDOWS[self._settings.window](self._settings)
        window.restart()
        self._windows[dpid] = window
        if len(self._windows) > WINDOWS_BOUND:
            del self._windows[next(iter(self._windows))]
        return window

    def use(self, settings: Edits) -> None:
        """Go by other settings from here on; windows of another kind learn anew."""
        if settings == self._settings:
            return
        kept = settings.window == self._settings.window
        self._settings = settings
        if kept:
            for window in self._windows.values():
                window.use(settings)
        else:
            self._windows.clear()
