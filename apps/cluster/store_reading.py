"""Keys of the store that are read whole, page by page, as of one revision."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from controller.cluster.engine import KeyPage, KeyValue, ReadPage, Reply, Request

Ask: TypeAlias = Callable[[Request], Reply]
"""Has the store answer, and waits for it."""


class StoreSilent(Exception):  # noqa: N818
    """The store does not tell what was asked for; the text says why."""


def read_below(ask: Ask, prefix: str) -> tuple[int, tuple[KeyValue, ...]]:
    """Return the keys that begin with a prefix, and as of which revision; StoreSilent where it does not answer."""
    held: list[KeyValue] = []
    after, revision = "", 0
    while True:
        page = ask(ReadPage(prefix, after, revision))
        if type(page) is not KeyPage:
            raise StoreSilent(getattr(page, "why", "What it told is too long ago."))
        held += page.held
        if not page.has_more:
            return page.revision, tuple(held)
        after, revision = page.held[-1].key, page.revision
