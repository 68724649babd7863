"""Which of many documents changed since a reader last looked, kept in bounded room and rendered only when read."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

Key = TypeVar("Key", bound=Hashable)
Document = dict[str, Any]

SLACK = 4096
"""Keys that a log may hold beyond twice those that there were when it was read whole."""


class Delta(NamedTuple, Generic[Key]):
    """What a reader is to look at again: `keys` in the order of their last change, as of `version`.

    `whole`: whatever the reader knows of other keys is void. `more`: further keys follow from `version` on.
    """

    version: int
    whole: bool
    keys: tuple[Key, ...]
    more: bool


class ChangeLog(Generic[Key]):
    """The keys that changed, each with the version of its last change.

    A key stays when what it stood for is gone: that is a change as well. Nothing is noted before the first reading
    and after an overflow, until the next one: that begins anew with all keys that there are. `bound` is how many keys
    the log may hold, 0 while nothing is noted.
    """

    def __init__(self) -> None:
        self.version = 1
        self._log: dict[Key, int] = {}
        self._first = 1
        self.bound = 0

    def touch(self, key: Key) -> None:
        """Note that what a key stands for appeared, changed or went away."""
        if not self.bound:
            return
        log = self._log
        if key in log:
            del log[key]
        self.version += 1
        log[key] = self.version
        if len(log) > self.bound:
            self.forget()

    def forget(self) -> None:
        """Have every reader begin anew."""
        self._log = {}
        self.bound = 0
        self.version += 1
        self._first = self.version

    def since(self, version: int, limit: int, keys: Callable[[], Iterable[Key]]) -> Delta[Key]:
        """Return what changed after `version`, at most `limit` keys, the oldest changes first.

        `keys` returns the keys that there are, which a reader who begins anew is told.
        `version` is 0 for who never read; a reader goes on with the version returned. `limit` is 1 at least.
        """
        whole = not self.bound or not self._first <= version <= self.version
        if not self.bound:
            self._begin(keys)
        log = self._log
        if whole:
            first = tuple(islice(log, limit))
        elif version == self.version:
            return Delta(version, False, (), False)
        else:
            newer = []
            for key in reversed(log):
                if log[key] <= version:
                    break
                newer.append(key)
            newer.reverse()
            first = tuple(newer[:limit])
        if first and first[-1] != next(reversed(log)):
            return Delta(log[first[-1]], whole, first, True)
        return Delta(self.version, whole, first, False)

    def _begin(self, keys: Callable[[], Iterable[Key]]) -> None:
        self.forget()
        for key in keys():
            self.version += 1
            self._log[key] = self.version
        self.bound = 2 * len(self._log) + SLACK


class DocumentLog(Generic[Key]):
    """Documents by id, of which a reader gets those that changed.

    Parameters
    ----------
    keys
        Returns the keys of the documents that there are.
    render
        Returns the document of a key, JSON-able, or None where there is none.
    ident
        Returns the id of a key's document, also of one that is gone.
    log
        Where it is said which of them changed, if not here.
    """

    def __init__(
        self,
        keys: Callable[[], Iterable[Key]],
        render: Callable[[Key], Document | None],
        ident: Callable[[Key], str] = str,
        log: ChangeLog[Key] | None = None,
    ) -> None:
        self.log: ChangeLog[Key] = ChangeLog() if log is None else log
        self.touch = self.log.touch
        self._keys = keys
        self._render = render
        self._ident = ident

    def changes(self, version: int, limit: int) -> Document:
        """Return what a reader of `version` lacks: `version`, `whole`, `put`, `remove` and `more`."""
        delta = self.log.since(version, limit, self._keys)
        put: dict[str, Document] = {}
        remove: list[str] = []
        for key in delta.keys:
            document = self._render(key)
            if document is not None:
                put[self._ident(key)] = document
            elif not delta.whole:
                remove.append(self._ident(key))
        return {"version": delta.version, "whole": delta.whole, "put": put, "remove": remove, "more": delta.more}


def changes(sections: Mapping[str, DocumentLog[Any]], asked: Mapping[str, int], limit: int) -> dict[str, Document]:
    """Return what a reader lacks of each section it asks for, with some `limit` keys in all, fairly shared.

    `asked` maps names to versions; names that there are not are left out.
    """
    found = [name for name in asked if name in sections]
    answer = {}
    for waiting, name in zip(range(len(found), 0, -1), found, strict=True):
        share = max(1, limit // waiting)
        answer[name] = delta = sections[name].changes(asked[name], share)
        limit -= len(delta["put"]) + len(delta["remove"])
    return answer
