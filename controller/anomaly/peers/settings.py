"""What the peer comparison may be told; the defaults are those of Kasick et al."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Literal

Scope = Literal["member", "group", "pooled"]
Form = Literal["pairs", "binned", "median"]
Offsets = Literal["keep", "remove"]

INTERVAL_S, SMOOTHING, WINDOW, SHIFT = 15.0, 15, 60, 30
WINDOWS_WANTED = 50
"""A recording that holds fewer windows of the default length is cut finer."""
TRAINING_WINDOWS_WANTED = 6
"""Lengths of a window that a training period must hold, not counting overlap."""
SMALLEST_WINDOW = 12
"""Fewer samples say little about a distribution."""


@dataclass(frozen=True, slots=True)
class PeerSettings:
    """Parameters of the chain, with the values of Kasick et al., who have none of those from `scope` on."""

    interval_s: float = INTERVAL_S
    smoothing_samples: int = SMOOTHING
    window_samples: int = WINDOW
    shift_samples: int = SHIFT
    bins_max: int = 1000
    confirm_windows: int = 3
    """k: faulty where at least k of the past 2k - 1 windows are anomalous."""
    scope: Scope = "member"
    form: Form = "pairs"
    offsets: Offsets = "keep"
    leave_one_out: bool = True
    """In groups of two or three, bins are as small as they are without any one member."""
    own_history: bool = True
    """A second witness where more than half of a group has changed."""
    margin: float = 1.0
    """Thresholds are multiplied by it."""
    combined_share: float = 0.05
    """Share of the metrics, those furthest out, that a member's score over all metrics is the mean of."""
    ratio_max: float = 30.0
    """How far beyond its threshold one metric counts among several."""

    def __post_init__(self) -> None:
        for name, lowest in (("smoothing_samples", 1), ("window_samples", 2), ("shift_samples", 1), ("bins_max", 1)):
            if getattr(self, name) < lowest:
                raise ValueError(f"{name}: expected at least {lowest}, found {getattr(self, name)}")
        if self.confirm_windows < 1:
            raise ValueError(f"confirm_windows: expected at least 1, found {self.confirm_windows}")
        for name in ("interval_s", "margin", "ratio_max"):
            if not 0 < getattr(self, name) < float("inf"):
                raise ValueError(f"{name}: expected a positive number, found {getattr(self, name)}")
        if not 0 < self.combined_share <= 1:
            raise ValueError(f"combined_share: expected more than 0 and at most 1, found {self.combined_share}")

    @property
    def window_s(self) -> float:
        """Seconds that a window spans."""
        return self.window_samples * self.interval_s


def fitted(
    given: dict[str, object], usual_interval_s: float, recording_s: float, training_s: float | None = None
) -> PeerSettings:
    """Return settings that suit a recording, with what is given taken as it is.

    Kasick et al. sample every second, reduce to 15 s and look at whole days. Coarser samples are not made finer, and
    the moving average keeps its span of 225 s; a recording or training period that is too short for windows of 60
    samples of 15 s is reduced less and cut into shorter windows, of 12 samples at least.

    Parameters
    ----------
    given : dict
        Fields of `PeerSettings` by name.
    usual_interval_s, recording_s, training_s : float
        Seconds between samples, of the whole recording, and of the training period where there is one.
    """
    known = {field.name for field in fields(PeerSettings)}
    unknown = next((name for name in given if name not in known), None)
    if unknown is not None:
        raise ValueError(f"{unknown}: no such setting; expected one of {', '.join(sorted(known))}")
    replace(PeerSettings(), **given)  # type: ignore[arg-type]
    longest_s = recording_s / WINDOWS_WANTED
    if training_s is not None:
        longest_s = min(longest_s, training_s / TRAINING_WINDOWS_WANTED)
    interval_s = float(str(given.get("interval_s", 0))) or max(
        usual_interval_s, min(INTERVAL_S, longest_s / SMALLEST_WINDOW)
    )
    window = min(WINDOW, max(SMALLEST_WINDOW, int(longest_s / interval_s)))
    window = int(str(given.get("window_samples", window)))
    smoothing = max(1, min(SMOOTHING, window // (WINDOW // SMOOTHING), round(INTERVAL_S * SMOOTHING / interval_s)))
    chosen: dict[str, object] = {
        "interval_s": interval_s,
        "window_samples": window,
        "shift_samples": max(1, window // (WINDOW // SHIFT)),
        "smoothing_samples": smoothing,
    }
    return replace(PeerSettings(), **{**chosen, **given})  # type: ignore[arg-type]
