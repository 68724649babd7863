"""The reader's side of the change feed: deltas of several apps, merged into one snapshot of documents."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from controller.wire.dpids import format_dpid

Fields = Mapping[str, Any]

MAX_TOMBSTONES = 10_000
"""Removed ids that a section remembers; who asks from before the oldest is given the whole section."""

OWNERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"switches": ("multicast", "monitor"), "ports": ("multicast", "monitor")}
)
"""Who decides which documents of a section there are: the first of these apps that offers it. What other apps tell of
a document is added to it, and waits until there is one. Of any other section a document is there as long as an app
has a part of it."""

MISSING = "alarms"
"""The app that also tells of what is missing from the fabric, whole documents that nobody else may have."""

DATAPATH_IDS = ("dpid", "dpid_a", "dpid_b")
"""Fields with datapath ids; beside each stands one with ``_hex`` behind its name."""

_DIGITS = re.compile(r"(\d+)")
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


class FeedInvalid(ValueError):  # noqa: N818
    """An answer of the feed that is not as the feed's form has it; the text names what is wrong."""


class Document:
    """One document of a section, merged by field from the apps that offer it; never changed, only replaced."""

    __slots__ = ("_encoded", "_text", "fields", "id", "key")

    def __init__(self, id_: str, fields: dict[str, Any]) -> None:
        self.id = id_
        self.fields = fields
        self.key = natural_key(id_)
        self._encoded: bytes | None = None
        self._text: str | None = None

    @property
    def encoded(self) -> bytes:
        """The document as JSON on one line."""
        if self._encoded is None:
            self._encoded = _encode(self.fields).encode()
        return self._encoded

    @property
    def text(self) -> str:
        """Every value in the document, in lower case, to search in."""
        if self._text is None:
            self._text = "\n".join(_words(self.fields)).lower()
        return self._text


class Difference(NamedTuple):
    """What became of a section since some version."""

    put: list[Document]
    removed: list[str]


def natural_key(text: str) -> tuple[tuple[int, str], ...]:
    """Return a key that sorts texts with numbers in them as people do: ``2:10`` behind ``2:9``."""
    parts = _DIGITS.split(text)
    return tuple((int(part), "") if index % 2 else (-1, part) for index, part in enumerate(parts))


def _words(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for child in value.values():
            yield from _words(child)
    elif isinstance(value, list | tuple):
        for child in value:
            yield from _words(child)
    elif value is not None:
        yield str(value)


def with_hexadecimal(fields: dict[str, Any]) -> dict[str, Any]:
    """Add to each datapath id of a document, which may be more than a browser reads exactly, its digits as text."""
    for name in DATAPATH_IDS:
        dpid = fields.get(name)
        if type(dpid) is int:
            fields[f"{name}_hex"] = format_dpid(dpid)
    return fields


class DocumentCopy:
    """The documents of one section, and at which version each last changed.

    `parts` holds what each app that offers the section tells, `owner` is the app that decides which documents there
    are; None where none of `OWNERS` offers it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.owner: str | None = None
        self.version = 0
        self.parts: dict[str, dict[str, Fields]] = {}
        self.documents: dict[str, Document] = {}
        self._changed: dict[str, int] = {}
        self._removed: dict[str, int] = {}
        self._oldest = 0
        self._in_order: list[Document] | None = None

    def offered(self, app: str, version: int) -> None:
        """Take note that an app offers this section."""
        if app not in self.parts:
            self.parts[app] = {}
            self._choose_owner(version)

    def withdrawn(self, app: str, version: int) -> None:
        """Forget all that an app told that offers this section no longer."""
        told = self.parts.pop(app, {})
        self._choose_owner(version)
        for id_ in told:
            self._merge(id_, version)

    def put(self, app: str, id_: str, fields: Fields, version: int) -> None:
        """Take an app's part of a document."""
        self.offered(app, version)
        self.parts[app][id_] = fields
        self._merge(id_, version)

    def remove(self, app: str, id_: str, version: int) -> None:
        """Forget an app's part of a document; the document goes with it where the app decides, or was the last."""
        if self.parts.get(app, {}).pop(id_, None) is not None:
            self._merge(id_, version)

    def since(self, version: int) -> Difference | None:
        """Return what changed after `version`; None where the section does not remember that far back."""
        if version < self._oldest:
            return None
        return Difference(
            [self.documents[id_] for id_ in _after(self._changed, version)], list(_after(self._removed, version))
        )

    def in_order(self) -> list[Document]:
        """Return the documents in the natural order of their ids."""
        if self._in_order is None:
            self._in_order = sorted(self.documents.values(), key=lambda document: document.key)
        return self._in_order

    def _choose_owner(self, version: int) -> None:
        owner = next((app for app in OWNERS.get(self.name, ()) if app in self.parts), None)
        if owner != self.owner:
            self.owner = owner
            for id_ in {id_ for part in self.parts.values() for id_ in part}:
                self._merge(id_, version)

    def _merge(self, id_: str, version: int) -> None:
        is_owned = self.owner is not None and id_ in self.parts[self.owner]
        decided = self.owner is None or is_owned or id_ in self.parts.get(MISSING, ())
        parts = (
            [part[id_] for app, part in self.parts.items() if id_ in part and app != self.owner] if decided else []
        )
        if self.owner is not None and is_owned:
            parts.append(self.parts[self.owner][id_])
        if not parts and id_ not in self.documents:
            return
        self.version = version
        self._in_order = None
        self._changed.pop(id_, None)
        self._removed.pop(id_, None)
        if parts:
            fields = {"id": id_, **parts[0]}
            for part in parts[1:]:
                fields.update(
                    (name, value) for name, value in part.items() if value is not None or name not in fields
                )
            self.documents[id_] = Document(id_, with_hexadecimal(fields))
            self._changed[id_] = version
            return
        del self.documents[id_]
        self._removed[id_] = version
        if len(self._removed) > MAX_TOMBSTONES:
            self._oldest = self._removed.pop(next(iter(self._removed)))


def _after(versions: dict[str, int], version: int) -> Iterator[str]:
    """Yield the ids that changed after `version`; the mapping is in the order of the changes."""
    for id_ in reversed(versions):
        if versions[id_] <= version:
            return
        yield id_


def silent_apps(answer: Any) -> str | None:
    """Return a sentence about the apps whose part an answer of the feed lacks, as they did not answer; else None."""
    errors = answer.get("errors") if isinstance(answer, Mapping) else None
    if not isinstance(errors, Mapping) or not errors:
        return None
    return "; ".join(f"the app {app} does not answer: {why}" for app, why in sorted(errors.items()))


class Snapshot:
    """What the apps of a controller tell, followed by their deltas.

    `version` counts the answers that changed something; it is this reader's own and has nothing to do with the apps'.
    """

    def __init__(self) -> None:
        self.version = 0
        self.epoch: str | None = None
        self.sections: dict[str, DocumentCopy] = {}
        self._asked: dict[str, dict[str, int]] = {}
        self._names: tuple[str, ...] = ()
        self._stale: dict[tuple[str, str], set[str]] = {}
        self._unconfirmed: set[tuple[str, str]] = set()

    def question(self) -> dict[str, Any]:
        """Return what to ask the feed next."""
        question: dict[str, Any] = {"changes": {name: self._asked.get(name, 0) for name in self._names}}
        if self.epoch is not None:
            question["epoch"] = self.epoch
        return question

    def section(self, name: str) -> DocumentCopy:
        """Return a section, an empty one where no app offers it."""
        return self.sections.get(name) or self.sections.setdefault(name, DocumentCopy(name))

    def tell(self, name: str, id_: str, fields: Fields) -> None:
        """Put fields that do not come from the feed but from this reader."""
        self.version += 1
        self.section(name).put(OWN, id_, fields, self.version)

    def apply(self, answer: Any) -> bool:
        """Take an answer of the feed; return whether more is to be asked for at once.

        FeedInvalid where it is no answer of a feed; then part of it may have been taken.
        """
        epoch, sections, names = _answer(answer)
        before = self._names
        self._names = names
        if epoch != self.epoch:
            self.epoch = epoch
            self._asked.clear()
            self._stale.clear()
            self._unconfirmed = {(name, app) for name, section in self.sections.items() for app in section.parts}
        version, changed, more = self.version + 1, False, False
        for name, apps in sections.items():
            for app, delta in _mapping(apps, name).items():
                fault = f"{name}.{app}"
                touched, rest = self._apply(self.section(name), app, _mapping(delta, fault), version, fault)
                changed, more = changed or touched, more or rest
        if changed:
            self.version = version
        if not more and set(names) <= sections.keys() and not answer.get("errors"):
            self._forget_unconfirmed()
        return more or before != names

    def _apply(self, section: DocumentCopy, app: str, delta: Fields, version: int, fault: str) -> tuple[bool, bool]:
        put, removed = _mapping(delta.get("put", {}), f"{fault}.put"), delta.get("remove", [])
        if not isinstance(removed, list) or not isinstance(delta.get("version"), int):
            raise FeedInvalid(f"{fault}: no list in `remove`, or no number in `version`")
        source = (section.name, app)
        section.offered(app, version)
        self._asked.setdefault(section.name, {})[app] = delta["version"]
        if delta.get("whole"):
            self._unconfirmed.discard(source)
            self._stale[source] = set(section.parts.get(app, ()))
        stale = self._stale.get(source, set())
        for id_, fields in put.items():
            section.put(app, id_, _mapping(fields, f"{fault}.put[{id_}]"), version)
        stale.difference_update(put)
        gone: Iterable[str] = removed
        if not delta.get("more"):
            gone = [*removed, *self._stale.pop(source, ())]
        for id_ in gone:
            section.remove(app, id_, version)
        return bool(put or gone) or section.version == version, bool(delta.get("more"))

    def _forget_unconfirmed(self) -> None:
        """Drop what an earlier process told and this one has not told again; what this reader tells itself stays."""
        gone = [(name, app) for name, app in self._unconfirmed if app != OWN]
        self._unconfirmed.clear()
        if gone:
            self.version += 1
        for name, app in gone:
            self.sections[name].withdrawn(app, self.version)


OWN = "dashboard"
"""The name under which a reader tells documents of its own."""


def _answer(answer: Any) -> tuple[str, Fields, tuple[str, ...]]:
    fields = _mapping(answer, "the answer")
    if "error" in fields:
        raise FeedInvalid(str(fields["error"]))
    epoch, names = fields.get("epoch"), fields.get("names")
    if not isinstance(epoch, str) or not isinstance(names, list):
        raise FeedInvalid("the answer has no text in `epoch`, or no list in `names`")
    return epoch, _mapping(fields.get("sections", {}), "sections"), tuple(str(name) for name in names)


def _mapping(value: Any, what: str) -> Fields:
    if not isinstance(value, Mapping):
        raise FeedInvalid(f"{what}: expected an object")
    return value
