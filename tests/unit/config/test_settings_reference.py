"""The settings: their registry, their bounds, and their table in the documentation."""

from pathlib import Path

import pytest

from controller.config import PolicyInvalid, load_policy
from controller.config.load import SECTIONS
from controller.config.reference import settings_table
from controller.config.settings import (
    SETTING_SECTIONS,
    Section,
    Setting,
    SettingType,
    all_settings,
    declared,
)
from controller.trees.algorithms import ALGORITHMS, DEFAULT_ALGORITHM

DOCUMENT = Path(__file__).parents[3] / "docs" / "policy.md"

BOUNDED = [(name, entry) for name, entry in all_settings() if entry.lower is not None]


def written(name: str, value: object) -> str:
    """Return a policy that sets one setting, and others far enough away from it that any value goes with them."""
    *path, last = name.split(".")
    text = f"{{{last}: {value}}}"
    if path[-1] == "querier":
        others = {"query_interval_s": 31744, "response_interval_s": 0.1}
        others.pop(last, None)
        text = f"{{{last}: {value}, " + ", ".join(f"{key}: {other}" for key, other in others.items()) + "}"
    if path == ["scaling"] and last in ("least", "limit"):
        text = f"{{{last}: {value}, " + {"least": "limit: 256}", "limit": "least: 1}"}[last]
    for step in reversed(path[1:]):
        text = f"{{{step}: {text}}}"
    return f"version: 1\n{path[0]}: {text}\n"


def test_the_trees_are_those_of_the_registry():
    setting = dict(all_settings())["multicast.tree"]
    assert (setting.choices, setting.default) == (tuple(ALGORITHMS), DEFAULT_ALGORITHM)


def test_the_documented_table_is_that_of_the_declarations():
    assert settings_table() in DOCUMENT.read_text(encoding="utf-8"), "print it: python -m controller.config.reference"


def test_every_section_is_documented():
    text = DOCUMENT.read_text(encoding="utf-8")
    assert [name for name in SECTIONS if f"`{name}`" not in text] == []


@pytest.mark.parametrize(
    ("name", "entry"), list(all_settings()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_default_is_within_its_bounds(name: str, entry: Setting):
    assert entry.meaning.endswith(".")
    if entry.type is SettingType.CHOICE:
        assert entry.default in entry.choices
    elif entry.lower is not None and not entry.optional:
        assert entry.lower <= entry.default <= entry.upper


@pytest.mark.parametrize(("name", "entry"), BOUNDED, ids=lambda value: value if isinstance(value, str) else "")
def test_bounds_are_inclusive_and_nothing_beyond_them_is_taken(name: str, entry: Setting):
    inside = [entry.lower, entry.upper]
    if name.endswith("query_interval_s"):
        inside = [entry.upper]
    for value in inside:
        load_policy(written(name, value))
    for value in (entry.lower - 1, entry.upper + 1):
        with pytest.raises(PolicyInvalid) as caught:
            load_policy(written(name, value))
        assert caught.value.errors[0].field == name


def test_every_setting_has_its_default_where_the_file_is_silent():
    policy = load_policy("version: 1")
    for name, entry in all_settings():
        value: object = policy
        for step in name.split("."):
            value = getattr(value, step)
        assert value == entry.default


def test_sections_nest_as_declared():
    assert isinstance(declared(SETTING_SECTIONS["multicast"])["querier"], Section)
