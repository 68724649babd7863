"""The newest of many things, as documents by their numbers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from controller.snapshot.log import Document, DocumentLog

Item = TypeVar("Item")


class Ring(Generic[Item]):
    """The newest `bound` items, numbered from 1; `section` has their documents.

    Parameters
    ----------
    bound
        Items kept; beyond it the oldest goes.
    render
        Returns the document of an item.
    ident
        Returns the id of the item with a number.
    """

    def __init__(self, bound: int, render: Callable[[Item], Document], ident: Callable[[int], str] = str) -> None:
        self.section: DocumentLog[int] = DocumentLog(self._numbers, self._document, ident)
        self._render = render
        self._items: deque[Item] = deque(maxlen=bound)
        self._bound = bound
        self._last = 0

    def add(self, item: Item) -> None:
        """Add the newest item."""
        self._items.append(item)
        self._last += 1
        self.section.touch(self._last)
        if self._last > self._bound:
            self.section.touch(self._last - self._bound)

    def _numbers(self) -> range:
        return range(self._last - len(self._items) + 1, self._last + 1)

    def _document(self, number: int) -> Document | None:
        index = number - self._last + len(self._items) - 1
        return self._render(self._items[index]) if index >= 0 else None
