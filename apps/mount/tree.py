"""What stands in the folders of a mounted controller: sections, documents and fields, and the log of events."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from types import MappingProxyType

from controller.snapshot.reader import Document, Snapshot

EVENTS = "events"
CONNECTION = "connection"
DO = "do"
ANSWER = "answer"

EVENTS_BYTES = 4 << 20
"""As large as the file of events grows; then its older half goes, as where a log is cut short."""

NAME_BYTES = 255
"""As long as a name in a folder may be (NAME_MAX)."""

_ESCAPED = {"/": "%2F", "%": "%25"}
_Documents = Mapping[str, Document]


class NoEntry(Exception):  # noqa: N818 - it names what is so, as events do
    """There is nothing of that path."""


def file_name(id_: str) -> str:
    """Return what a document or field is called in a folder: ``/``, ``%`` and what does not print are ``%XX``."""
    name = "".join(_ESCAPED.get(sign) or (sign if sign.isprintable() else _percent(sign)) for sign in id_)
    if name in ("", ".", ".."):
        name = _percent(name) or "%"
    data = name.encode("utf-8", "replace")
    if len(data) <= NAME_BYTES:
        return name
    digest = sha256(id_.encode("utf-8", "replace")).hexdigest()[:16]
    return f"{data[: NAME_BYTES - 17].decode('utf-8', 'ignore')}~{digest}"


def _percent(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "replace"))


def content(value: object) -> bytes:
    """Return what a file of a field holds: nothing for null, text as it is, else JSON; then the end of a line."""
    if value is None:
        return b""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "replace") + b"\n"


class EventsFile:
    """The events as lines of JSON, appended as they are told."""

    def __init__(self) -> None:
        self.data = b""
        self._seen: frozenset[str] = frozenset()

    def take(self, documents: _Documents) -> None:
        """Append the events that are new, in the order of their times."""
        new = [document for id_, document in documents.items() if id_ not in self._seen]
        self._seen = frozenset(documents)
        if not new:
            return
        new.sort(key=lambda document: (document.fields.get("time_s") or 0, document.key))
        data = self.data + b"".join(document.encoded + b"\n" for document in new)
        if len(data) > EVENTS_BYTES:
            data = data[data.index(b"\n", len(data) - EVENTS_BYTES // 2) + 1 :]
        self.data = data


class MountedTree:
    """The folders and files; any thread may read while one thread puts what the feed tells.

    `verbs` are the names of the files in `do`. A section that has one document of its own name, such as `status`, has
    that one's fields in its folder itself. `connection` says how the controller is, whenever that is read.
    """

    def __init__(self, verbs: Sequence[str]) -> None:
        self.verbs = frozenset(verbs)
        self.answer = b""
        self.connection: Callable[[], bytes] = lambda: b""
        self._events = EventsFile()
        self._versions: dict[str, int] = {}
        self._sections: Mapping[str, Mapping[str, Document]] = MappingProxyType({})
        self._lock = threading.Lock()

    def put(self, snapshot: Snapshot) -> None:
        """Take what the feed tells now."""
        with self._lock:
            sections = dict(self._sections)
            for name, section in snapshot.sections.items():
                if self._versions.get(name) == section.version and name in sections:
                    continue
                self._versions[name] = section.version
                if name == EVENTS:
                    self._events.take(section.documents)
                else:
                    sections[name] = {file_name(id_): document for id_, document in section.documents.items()}
            self._sections = sections

    def is_folder(self, path: Sequence[str]) -> bool:
        """Tell whether a path is a folder and not a file; NoEntry where it is neither."""
        match path:
            case []:
                return True
            case [name] if name in (EVENTS, CONNECTION):
                return False
            case ["do"]:
                return True
            case ["do", name] if name == ANSWER or name in self.verbs:
                return False
            case [section]:
                self._section(section)
                return True
            case [section, name]:
                fields = self._alone(section)
                if fields is not None:
                    self._field(fields, name)
                    return False
                self._document(section, name)
                return True
            case [section, id_, name]:
                self._field(self._document(section, id_), name)
                return False
        raise NoEntry

    def names(self, path: Sequence[str]) -> list[str]:
        """Return the names in a folder; NoEntry where there is none."""
        match path:
            case []:
                return sorted({*self._sections, EVENTS, CONNECTION, DO})
            case ["do"]:
                return sorted({*self.verbs, ANSWER})
            case [section]:
                fields = self._alone(section)
                return list(self._section(section)) if fields is None else [file_name(name) for name in fields]
            case [section, id_] if self._alone(section) is None:
                return [file_name(name) for name in self._document(section, id_)]
        raise NoEntry

    def read(self, path: Sequence[str]) -> bytes:
        """Return what is in a file now; NoEntry where there is none. Files of verbs are empty."""
        match path:
            case [name] if name == EVENTS:
                return self._events.data
            case [name] if name == CONNECTION:
                return self.connection()
            case ["do", name] if name == ANSWER:
                return self.answer
            case ["do", name] if name in self.verbs:
                return b""
            case [section, name]:
                fields = self._alone(section)
                if fields is not None:
                    return content(self._field(fields, name))
            case [section, id_, name]:
                return content(self._field(self._document(section, id_), name))
        raise NoEntry

    def _section(self, name: str) -> Mapping[str, Document]:
        found = self._sections.get(name)
        if found is None:
            raise NoEntry
        return found

    def _alone(self, section: str) -> Mapping[str, object] | None:
        documents = self._section(section)
        document = documents.get(section) if len(documents) == 1 else None
        return None if document is None else document.fields

    def _document(self, section: str, id_: str) -> Mapping[str, object]:
        document = self._section(section).get(id_)
        if document is None:
            raise NoEntry
        return document.fields

    @staticmethod
    def _field(fields: Mapping[str, object], name: str) -> object:
        if name in fields:
            return fields[name]
        for field, value in fields.items():
            if file_name(field) == name:
                return value
        raise NoEntry
