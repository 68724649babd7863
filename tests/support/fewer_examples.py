"""Properties that are tried with a part of their examples, where the whole is tried elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import is_hypothesis_test, settings


def divide_examples(items: Iterable[pytest.Item], divisor: int) -> None:
    """Have each property tried with one of `divisor` of its examples, and with one at least."""
    for bearer, name in {found for item in items if (found := _bearer(item)) is not None}:
        full = getattr(bearer, name)
        setattr(bearer, name, settings(full, max_examples=max(1, full.max_examples // divisor)))


def _bearer(item: Any) -> tuple[Any, str] | None:
    """Return what has Hypothesis' settings for a test, and the attribute they are; None without examples."""
    if isinstance(getattr(item.cls, "settings", None), settings):
        return item.cls, "settings"
    function = getattr(item.obj, "__func__", item.obj)
    return (function, "_hypothesis_internal_use_settings") if is_hypothesis_test(function) else None
