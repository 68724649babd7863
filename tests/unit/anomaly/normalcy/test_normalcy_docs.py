from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from controller.anomaly.normalcy.categories import CATEGORIES
from controller.anomaly.normalcy.settings import Settings

PAGE = (Path(__file__).parents[4] / "docs" / "anomaly-normalcy.md").read_text(encoding="utf-8")


def test_every_parameter_is_in_the_docs_with_its_default():
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \|", PAGE.partition("## Parameters")[2], re.M))
    assert list(rows) == [field.name for field in fields(Settings)]
    for name, text in rows.items():
        value = getattr(Settings(), name)
        written = [part.strip() for part in text.split(",")]
        if isinstance(value, tuple):
            assert written == [part if isinstance(part, str) else f"{part:g}" for part in value], name
        else:
            assert float(text) == value, name


def test_every_category_is_in_the_docs():
    assert [name for name in CATEGORIES if name not in PAGE] == []
