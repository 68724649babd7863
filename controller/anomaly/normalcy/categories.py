"""The parametric categories by name; a user's own are added by `register`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from controller.anomaly.normalcy.multinomial import detect_multinomial
from controller.anomaly.normalcy.result import SeriesNormalcy
from controller.anomaly.normalcy.semi_constant import detect_semi_constant
from controller.anomaly.normalcy.series import Series
from controller.anomaly.normalcy.settings import SettingError, Settings
from controller.anomaly.normalcy.transient import detect_transient
from controller.anomaly.normalcy.trendy import detect_trendy

Detector = Callable[[Series, Settings], SeriesNormalcy | None]
"""Returns the normalcy of a series (`min_points` points or more) that is of the category, else None."""

CATEGORIES: dict[str, Detector] = {
    "multinomial": detect_multinomial,
    "transient": detect_transient,
    "semi-constant": detect_semi_constant,
    "trendy": detect_trendy,
}
"""What `Settings.categories` may name; it also gives the order."""


def register(name: str, detector: Detector, categories: dict[str, Detector] = CATEGORIES) -> None:
    """Add a category; it is tried where `Settings.categories` names it. SettingError for a name that is taken."""
    if name in categories:
        raise SettingError(f"categories: {name!r} is there already")
    categories[name] = detector


def chosen(settings: Settings, categories: Mapping[str, Detector] = CATEGORIES) -> list[Detector]:
    """Return the detectors in their order; SettingError for an unknown name."""
    for name in settings.categories:
        if name not in categories:
            raise SettingError(f"categories: {name!r} is none of {', '.join(categories)}")
    return [categories[name] for name in settings.categories]
