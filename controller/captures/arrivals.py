"""How frames of a group arrive: rates, sizes, gaps and dispersion, counted in bounded room as they come."""

from __future__ import annotations

from math import sqrt
from typing import Any

from controller.time_bins import TimeBins

SIZE_BOUNDS = (64, 127, 255, 511, 1023, 1518)
"""Upper ends of the classes of sizes, of frames with their check sequence (RFC 2819, etherStatsPkts64Octets etc.)."""

CHECK_SEQUENCE_BYTES = 4
WINDOWS_NS = (10_000_000, 100_000_000, 1_000_000_000)
FEWEST_WINDOWS = 10
"""Of fewer windows no dispersion is told."""

MOST_STEPS = 512
SHORTEST_STEP_NS = 1_000_000
"""Of the course of a rate: so many steps at most, none shorter."""


class _WindowCounts:
    """Frames and bytes in windows of one width after the other, those without frames included.

    The first and the last window, which the capture need not cover, are left out of what is told.
    """

    __slots__ = ("bytes_", "first_frames", "first_number", "frames", "most_bytes", "number", "squares", "width_ns")

    def __init__(self, width_ns: int) -> None:
        self.width_ns = width_ns
        self.first_number = self.number = -1
        self.first_frames = self.frames = self.bytes_ = self.most_bytes = self.squares = 0

    def add(self, at_ns: int, size_bytes: int) -> None:
        """Count a frame, none of which came later before."""
        number = at_ns // self.width_ns
        if number == self.number:
            self.frames += 1
            self.bytes_ += size_bytes
            return
        if self.number >= 0:
            self._close()
        else:
            self.first_number = number
        self.number, self.frames, self.bytes_ = number, 1, size_bytes

    def _close(self) -> None:
        if self.number == self.first_number:
            self.first_frames = self.frames
        else:
            self.squares += self.frames * self.frames
        self.most_bytes = max(self.most_bytes, self.bytes_)

    def peak_bps(self) -> float:
        """Return the highest rate of a window."""
        return max(self.most_bytes, self.bytes_) * 8e9 / self.width_ns

    def dispersion(self, total_frames: int) -> float | None:
        """Return variance over mean of the frames in a window, None of few windows."""
        windows = self.number - self.first_number - 1
        if windows < FEWEST_WINDOWS:
            return None
        inner = total_frames - self.first_frames - self.frames
        if not inner:
            return None
        mean = inner / windows
        return max(0.0, self.squares / windows - mean * mean) / mean


class _RateSeries:
    """Bytes over time in some hundred steps, each twice as long whenever the time they cover is full."""

    __slots__ = ("begin_ns", "steps", "width_ns")

    def __init__(self) -> None:
        self.begin_ns = 0
        self.width_ns = SHORTEST_STEP_NS
        self.steps: list[int] = []

    def add(self, at_ns: int, size_bytes: int) -> None:
        if not self.steps:
            self.begin_ns = at_ns
        number = (at_ns - self.begin_ns) // self.width_ns
        while number >= MOST_STEPS:
            self.steps = [sum(self.steps[at : at + 2]) for at in range(0, len(self.steps), 2)]
            self.width_ns *= 2
            number = (at_ns - self.begin_ns) // self.width_ns
        missing = number + 1 - len(self.steps)
        if missing > 0:
            self.steps += [0] * missing
        self.steps[number] += size_bytes


class ArrivalTally:
    """Arrivals of one group. Sizes are of frames without their check sequence, as meters count.

    Attributes
    ----------
    frame_count, size_bytes
        How many there were, and their bytes in all.
    first_ns, last_ns
        When the first and the last came.
    backward_count
        Frames whose time is before that of the one in front of them; their gap counts as none.
    """

    def __init__(self) -> None:
        self.frame_count = self.size_bytes = self.first_ns = self.last_ns = self.backward_count = 0
        self._smallest_bytes = self._largest_bytes = self._size_squares = 0
        self._classes = [0] * (len(SIZE_BOUNDS) + 1)
        self._gaps = TimeBins()
        self._gap_squares = 0.0
        self._course = _RateSeries()
        self._windows = tuple(_WindowCounts(width_ns) for width_ns in WINDOWS_NS)

    def count(self, at_ns: int, size_bytes: int) -> None:
        """Count a frame."""
        if not self.frame_count:
            self.first_ns = self.last_ns = at_ns
            self._smallest_bytes = self._largest_bytes = size_bytes
        else:
            gap_ns = at_ns - self.last_ns
            if gap_ns < 0:
                self.backward_count += 1
                gap_ns, at_ns = 0, self.last_ns
            self._gaps.count(gap_ns)
            self._gap_squares += gap_ns * gap_ns
            if size_bytes < self._smallest_bytes:
                self._smallest_bytes = size_bytes
            elif size_bytes > self._largest_bytes:
                self._largest_bytes = size_bytes
        self.last_ns = at_ns
        self.frame_count += 1
        self.size_bytes += size_bytes
        self._size_squares += size_bytes * size_bytes
        number = 0
        for bound in SIZE_BOUNDS:
            if size_bytes + CHECK_SEQUENCE_BYTES <= bound:
                break
            number += 1
        self._classes[number] += 1
        for window in self._windows:
            window.add(at_ns, size_bytes)
        self._course.add(at_ns, size_bytes)

    def document(self) -> dict[str, Any]:
        """Return the figures as JSON has them; rates are over the time from the first to the last frame."""
        frames = self.frame_count
        lasted_s = (self.last_ns - self.first_ns) / 1e9
        mean_bytes = self.size_bytes / frames if frames else 0.0
        spread = sqrt(max(0.0, self._size_squares / frames - mean_bytes * mean_bytes)) if frames else 0.0
        names = [str(bound) for bound in SIZE_BOUNDS]
        return {
            "frames": frames,
            "bytes": self.size_bytes,
            "first_s": self.first_ns / 1e9,
            "lasted_s": round(lasted_s, 9),
            "rate_pps": round((frames - 1) / lasted_s, 3) if lasted_s else None,
            "rate_bps": round(mean_bytes * 8 * (frames - 1) / lasted_s, 1) if lasted_s else None,
            "peak_bps": {
                f"{window.width_ns / 1e9:g}": round(window.peak_bps(), 1) for window in self._windows if frames
            },
            "size_bytes": {
                "min": self._smallest_bytes,
                "mean": round(mean_bytes, 1),
                "max": self._largest_bytes,
                "deviation": round(spread, 1),
                "up_to": dict(zip((*names, "more"), self._classes, strict=True)),
            },
            "dispersion": {
                f"{window.width_ns / 1e9:g}": None if found is None else round(found, 4)
                for window in self._windows
                for found in (window.dispersion(frames),)
            },
            "gaps": self._gap_figures(lasted_s),
            "backward": self.backward_count,
        }

    def gap_counts(self) -> list[tuple[float, int]]:
        """Return gaps as pairs of seconds (the middle of a bin) and how many there were."""
        return self._gaps.counts()

    def size_counts(self) -> list[int]:
        """Return how many frames there were of each class of `SIZE_BOUNDS`, and larger ones."""
        return list(self._classes)

    def rate_course(self) -> list[tuple[float, float]]:
        """Return the rate over time: when each step begins, in seconds since 1970-01-01 UTC, and bit/s in it."""
        course = self._course
        return [
            ((course.begin_ns + number * course.width_ns) / 1e9, size_bytes * 8e9 / course.width_ns)
            for number, size_bytes in enumerate(course.steps)
        ]

    def _gap_figures(self, lasted_s: float) -> dict[str, Any] | None:
        gaps = self.frame_count - 1
        if gaps < 1:
            return None
        mean_ms = 1000 * lasted_s / gaps
        variance = max(0.0, self._gap_squares / gaps / 1e12 - mean_ms * mean_ms)
        told: dict[str, Any] = {"mean_ms": round(mean_ms, 6), **self._gaps.document()}
        told["variation"] = round(sqrt(variance) / mean_ms, 4) if mean_ms else None
        return told
