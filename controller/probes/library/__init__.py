"""Scripts that are shipped: files beside this one, each of which begins with the question that it answers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

SUFFIX = ".probe"


class LibraryScript(NamedTuple):
    """A script: what it is called, the question that it answers, and its text."""

    name: str
    question: str
    text: str


@cache
def library() -> Mapping[str, LibraryScript]:
    """Return all scripts by name, in the order of these."""
    found = {}
    for path in sorted(Path(__file__).parent.glob(f"*{SUFFIX}")):
        text = path.read_text(encoding="utf-8")
        found[path.stem] = LibraryScript(path.stem, text.splitlines()[0].removeprefix("//").strip(), text)
    return found
