"""What classes of compiled modules say of their fields is read from the source beside."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from pathlib import Path
from types import ModuleType, UnionType

import pytest

from controller.probes.declared import field_types, property_types
from controller.probes.value_kinds import fields_of

SOURCE = """
from __future__ import annotations
from typing import TYPE_CHECKING, NamedTuple, Protocol
if TYPE_CHECKING:
    from somewhere import Unknown

class Pair(NamedTuple):
    first: int
    second: bytes | None

class Named(Protocol):
    @property
    def name(self) -> str: ...

class Whole(NamedTuple):
    pair: Pair
    named: Named
    unknown: Unknown

class Base:
    known: Pair
"""


@pytest.fixture
def compiled(tmp_path: Path) -> Iterator[ModuleType]:
    """A module that looks as compiled ones do: of what is no class its annotations say nothing."""
    module = ModuleType("looks_compiled")
    module.__spec__ = ModuleSpec(
        "looks_compiled", ExtensionFileLoader("looks_compiled", str(tmp_path / "looks_compiled.cpython-311.so"))
    )
    sys.modules["looks_compiled"] = module
    exec(compile(SOURCE, "looks_compiled", "exec"), vars(module))
    for kind in (module.Pair, module.Whole, module.Base):
        kind.__annotations__ = dict.fromkeys(kind.__annotations__, type)
    yield module
    del sys.modules["looks_compiled"]


def test_fields_are_what_the_source_says(compiled: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "looks_compiled.py").write_text(SOURCE)
    assert field_types(compiled.Pair) == {"first": int, "second": bytes | None}
    assert field_types(compiled.Whole) == {"pair": compiled.Pair, "named": compiled.Named, "unknown": type}
    assert property_types(compiled.Named) == {"name": str}
    assert list(fields_of(compiled.Whole)) == ["pair", "named"]
    assert isinstance(field_types(compiled.Pair)["second"], UnionType)


def test_a_class_and_its_base_are_each_asked_where_they_are(compiled: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "looks_compiled.py").write_text(SOURCE)
    derived = type("Derived", (compiled.Base,), {"__annotations__": {"beside": int}, "__module__": __name__})
    assert field_types(derived) == {"known": compiled.Pair, "beside": int}


def test_without_the_source_fields_are_what_the_class_says(compiled: ModuleType) -> None:
    assert field_types(compiled.Pair) == {"first": type, "second": type}
    assert property_types(compiled.Named) == {"name": str}
