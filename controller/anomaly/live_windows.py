"""Which windows each peer group is judged in: its settings, and when a window has ended."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from controller.anomaly.live_groups import OF_POD
from controller.anomaly.live_metrics import cells_needed
from controller.anomaly.peers.diagnosis import NEWCOMERS
from controller.config.anomaly_settings import Anomaly


class GroupSettings:
    """The settings of each peer group, newcomers to it included: those of the policy, with its own windows.

    Attributes
    ----------
    settings
        Those of groups that have no windows of their own.
    """

    def __init__(self, settings: Anomaly) -> None:
        self.settings = settings
        self._own = {each.peer_group: settings.with_windows(each.windows) for each in settings.groups}
        self._found: dict[str, Anomaly] = {}

    def of(self, group: str) -> Anomaly:
        """Return the settings of a peer group."""
        found = self._found.get(group)
        if found is None:
            tier = group.removeprefix(NEWCOMERS).partition(OF_POD)[0]
            found = self._found[group] = self._own.get(tier, self.settings)
        return found

    @property
    def shifts(self) -> list[int]:
        """How many samples windows are shifted by, in some group or other."""
        return sorted({each.shift_samples for each in self._all()})

    @property
    def longest(self) -> int:
        """Samples of the longest window."""
        return max(each.window_samples for each in self._all())

    @property
    def cells_needed(self) -> int:
        """How many cells the values of the longest window are made of."""
        return max(map(cells_needed, self._all()))

    def chain(self, interval_s: float) -> str:
        """Return what learnt values hold for: of all groups, then of each that differs from them."""
        general = _chain(self.settings, interval_s)
        of_groups = ((group, _chain(own, interval_s)) for group, own in sorted(self._own.items()))
        return "".join([general, *(f";{group}={own}" for group, own in of_groups if own != general)])

    def _all(self) -> Iterator[Anomaly]:
        yield self.settings
        yield from self._own.values()


def chain_of(chain: str, group: str) -> str:
    """Return the part of a chain that holds for a peer group."""
    general, *of_groups = chain.split(";")
    tier = group.removeprefix(NEWCOMERS).partition(OF_POD)[0]
    return dict(part.split("=", 1) for part in of_groups if "=" in part).get(tier, general)


def _chain(settings: Anomaly, interval_s: float) -> str:
    return (
        f"{interval_s:g}/{settings.smoothing_samples}/{settings.window_samples}/{settings.shift_samples}/"
        f"{settings.bins_max}/{settings.confirm_windows}/{settings.form}/{settings.offsets}"
    )


class DueGroups:
    """The groups that wait to be judged, and the newest window of each shift that was found to be over."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[str, int, int]] = deque()
        self._ended: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def clear(self) -> None:
        """Begin anew: the first window of each shift that ends from here on is not judged."""
        self._waiting.clear()
        self._ended.clear()

    def over(self, shift: int, cell: int) -> tuple[int, int] | None:
        """Return which windows of a shift end last before a cell, the one of before first; None where none is new."""
        end = cell - cell % shift
        former = self._ended.setdefault(shift, end)
        if end <= former:
            return None
        self._ended[shift] = end
        return former, end

    def give_up(self, shift: int) -> int:
        """Leave out the groups of a shift that still wait, and return how many they are."""
        before = len(self._waiting)
        self._waiting = deque(each for each in self._waiting if each[2] != shift)
        return before - len(self._waiting)

    def add(self, groups: Iterable[str], end: int, shift: int) -> None:
        """Have groups wait to be judged in the window that ends before a cell."""
        self._waiting.extend((group, end, shift) for group in groups)

    def next(self) -> tuple[str, int, int]:
        """Return the group that has waited longest, where its window ends, and its shift."""
        return self._waiting.popleft()
