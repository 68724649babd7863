"""Every parameter of the normalcy determination, with its default."""

from __future__ import annotations

from dataclasses import dataclass, fields

DAY_S = 86_400.0
WEEK_S = 7 * DAY_S


class SettingError(ValueError):
    """A parameter that is unknown or out of its range; the text names it."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Parameters by the part that reads them; "article" marks a value that the article itself gives.

    Percentages are 0 to 100, shares and probabilities 0 to 1, times in seconds.
    """

    # Input
    monitoring_interval_s: float = 0.0
    """Time between two points; 0 estimates it."""
    history_s: float = 90 * DAY_S
    """What lies longer back than this before the last point is not looked at."""
    history_points: int = 400_000
    """More points than this are not held; the oldest go."""
    refit_s: float = WEEK_S
    """How long a category stands; 0 determines it with every addition."""

    # Data quality
    min_points: int = 20
    """Article."""
    min_length_s: float = WEEK_S
    """Article: shorter series are in start-up mode."""

    # Period
    time_unit_s: float = DAY_S
    """Article: the shortest cycle; every period is a multiple."""
    time_unit_parts: int = 24
    points_per_column: int = 4
    """Fewer points in a column and `time_unit_parts` shrinks."""
    frame_quantiles: tuple[float, ...] = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
    closeness: float = 0.2
    """Article."""
    quality_pct: float = 75.0
    """Article."""
    min_similarity_pct: float = 20.0
    """Article."""
    peak_tolerance_pct: float = 10.0
    """Similarities beyond chance that differ by no more are alike."""
    outlier_quantile: float = 0.005
    """Share of points at each end that is drawn in before patterns are sought."""
    smoothing_points: int = 3

    # Multinomial
    multinomial_max_values: int = 10
    multinomial_min_frequent: int = 2
    multinomial_h1_pct: float = 5.0
    multinomial_h2_pct: float = 10.0
    multinomial_h3_pct: float = 2.0
    multinomial_h_pct: float = 95.0

    # Transient
    transient_stay: float = 0.75
    """Article: H."""
    transient_between: float = 0.25
    """Article: h."""
    transient_between_density: float = 0.5
    """How densely points may lie between two modes, as a share of their mean density."""
    transient_parts: int = 20
    transient_min_between: float = 0.15
    """The narrowest region between two modes, as a share of the range."""
    transient_min_share: float = 0.05
    transient_max_modes: int = 4
    transient_hole_pct: float = 10.0
    transient_epsilon: float = 0.005

    # Semi-constant
    semi_constant_outlier_pct: float = 15.0
    """Article."""
    semi_constant_recent_share: float = 0.25

    # Trendy
    trend_pct: float = 40.0
    """Article."""
    trend_fit: float = 0.6
    """Article."""
    trend_widths: tuple[float, ...] = (1.0, 1.5, 2.0, 3.0, 4.0)
    """Article: z."""
    trend_a: float = 30.0
    trend_recent_share: float = 0.25

    # Density
    hole_factor: float = 2.5
    dense_max_gap_pct: float = 25.0
    corrupted_gap_pct: float = 97.0
    density_epsilon: float = 0.002

    # Stability
    stability_pct: float = 70.0
    """Article: S."""
    stability_points: int = 0
    """Points on each side; 0 takes max(20, N / 10), those of a time unit or more."""

    # Variability
    variability_pct: float = 20.0
    """Article: V."""
    whisker: float = 1.5
    whisker_high_variability: float = 3.0

    # Scores
    scale_quantile: float = 0.005
    """Distances are told in units of the range between this quantile and its opposite."""
    scale_floor_share: float = 0.01
    """The unit is no less than this share of the median's absolute value."""
    habit_gain: float = 3.5
    """How much what is outside on most days is discounted."""
    habit_units: int = 30
    duration_gain: float = 0.5
    """What a whole `duration_s` outside adds, as a share of the distance."""
    duration_s: float = 3600.0
    discord_s: float = 3600.0
    """Points of so long a time, in order, are compared with all such stretches before."""
    discord_quantile: float = 0.97
    """Stretches no further from all others than this quantile of those before are usual."""
    discord_gain: float = 1.0
    """What being so much further than is usual counts, beside being so far outside; 0 for bounds alone."""
    discord_points: int = 20_000
    """Points that stretches are compared with."""
    known_shape_divisor: float = 2.0
    """What is outside the bounds in a shape that was seen before counts so many times less."""
    alarm_score: float = 0.2
    """A score from here on is an alarm; scores are those of distances so far out, or whole powers of `repeat_factor`
    times as far."""
    hold_off_s: float = DAY_S / 2
    repeat_factor: float = 2.0
    """Within the hold-off an alarm repeats this many times further out."""

    # Categories in the order they are tried
    categories: tuple[str, ...] = ("multinomial", "transient", "semi-constant", "trendy")

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            numbers = value if isinstance(value, tuple) else (value,)
            if any(isinstance(number, float | int) and not 0 <= number < float("inf") for number in numbers):
                raise SettingError(f"{field.name}: expected a number not below 0, found {value!r}")
            if field.name.endswith("_pct") and value > 100:
                raise SettingError(f"{field.name}: expected a percentage, found {value!r}")
        for name in (
            "time_unit_s",
            "time_unit_parts",
            "points_per_column",
            "smoothing_points",
            "history_s",
            "trend_a",
        ):
            if getattr(self, name) <= 0:
                raise SettingError(f"{name}: expected a number above 0, found {getattr(self, name)!r}")
        if self.history_points < 4 * max(1, self.min_points):
            raise SettingError(f"history_points: expected 4 times min_points or more, found {self.history_points}")
        if self.discord_quantile > 1:
            raise SettingError(f"discord_quantile: expected a share from 0 to 1, found {self.discord_quantile}")
        if self.discord_points < 100:
            raise SettingError(f"discord_points: expected 100 or more, found {self.discord_points}")
        if not 0 < self.alarm_score < 1:
            raise SettingError(f"alarm_score: expected a number between 0 and 1, found {self.alarm_score}")
        if self.known_shape_divisor < 1:
            raise SettingError(f"known_shape_divisor: expected 1 or more, found {self.known_shape_divisor}")
        if self.repeat_factor <= 1:
            raise SettingError(f"repeat_factor: expected a number above 1, found {self.repeat_factor}")
        if self.transient_parts < 3:
            raise SettingError(f"transient_parts: expected at least 3, found {self.transient_parts}")
        if len(self.frame_quantiles) < 2 or any(q > 1 for q in self.frame_quantiles):
            raise SettingError("frame_quantiles: expected two or more shares from 0 to 1")
        if not self.trend_widths:
            raise SettingError("trend_widths: expected at least one width")
