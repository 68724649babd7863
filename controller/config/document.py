"""YAML text to a tree of nodes that know their lines; no part of it is resolved, shared or constructed."""

from __future__ import annotations

import re
from typing import NamedTuple, TypeAlias

import yaml

from controller.config.faults import Faults

MAX_BYTES = 4 << 20
MAX_DEPTH = 24

_LOADER: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FORBIDDEN = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ufeff\ue000-\ufffd\U00010000-\U0010ffff]")


class Scalar(NamedTuple):
    """A text; `plain` where it stands without quotes and so may also be a number, a boolean or nothing."""

    line: int
    text: str
    plain: bool


class Sequence(NamedTuple):
    """A list."""

    line: int
    items: list[Node]


class Mapping(NamedTuple):
    """Keys with their values, in the order of the file, duplicates included."""

    line: int
    pairs: list[tuple[Node, Node]]


class Alias(NamedTuple):
    """A reference to another node, which a policy must not have; already reported."""

    line: int


Node: TypeAlias = Scalar | Sequence | Mapping | Alias


def decode(data: bytes, faults: Faults) -> str | None:
    """Return the text of a file; None, with an error, where it is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        faults.error(line, "", f"byte 0x{data[error.start]:02x} is not UTF-8 text")
        return None


def parse(text: str, faults: Faults) -> Node | None:
    """Return the root node of a YAML text; None where there is none or the syntax is wrong.

    Anchors, aliases, tags, several documents, and nesting past `MAX_DEPTH` are errors, as is more than `MAX_BYTES`
    characters of text. Never raises, whatever the text.
    """
    if len(text) > MAX_BYTES:
        faults.error(1, "", f"the file is larger than {MAX_BYTES} bytes")
        return None
    forbidden = _FORBIDDEN.search(text)
    if forbidden:
        line = text.count("\n", 0, forbidden.start()) + 1
        faults.error(line, "", f"character U+{ord(forbidden[0]):04X} may not stand in a YAML text")
        return None
    builder = _Builder(faults)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            if not builder.take(event):
                return None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = min(mark.line + 1 if mark is not None else builder.line, max(1, len(text.splitlines())))
        faults.error(line, "", _syntax_message(error, text, line))
        return None
    except (ValueError, IndexError, OverflowError) as error:  # what PyYAML lets through on some escapes
        faults.error(builder.line, "", f"YAML syntax: {error}")
        return None
    if builder.root is None:
        faults.error(1, "", "the file is empty")
    return builder.root


def _syntax_message(error: yaml.YAMLError, text: str, line: int) -> str:
    lines = text.split("\n")
    if line <= len(lines) and "\t" in re.split(r"[^\s-]", lines[line - 1], maxsplit=1)[0]:
        return "YAML syntax: a tab in the indentation; use spaces"
    problem = getattr(error, "problem", None) or str(error)
    context = getattr(error, "context", None)
    mark = getattr(error, "context_mark", None)
    since = f" from line {mark.line + 1} on" if mark is not None and mark.line + 1 < line else ""
    return f"YAML syntax: {problem}" + (f" ({context}{since})" if context else "")


class _Builder:
    """Puts the parser's events together, with a stack of its own in place of recursion."""

    def __init__(self, faults: Faults) -> None:
        self.root: Node | None = None
        self.line = 1
        self._faults = faults
        self._open: list[Sequence | Mapping] = []
        self._keys: list[Node | None] = []
        self._documents = 0

    def take(self, event: yaml.Event) -> bool:
        """Add one event; False where the rest of the text is not worth reading."""
        if event.start_mark is not None:
            self.line = event.start_mark.line + 1
        if isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                self._faults.error(self.line, "", "a second YAML document; a policy is one document")
                return False
        elif isinstance(event, yaml.AliasEvent):
            self._faults.error(self.line, "", f"alias *{event.anchor}: aliases are not supported")
            self._add(Alias(self.line))
        elif isinstance(event, yaml.ScalarEvent):
            self._check_properties(event)
            self._add(Scalar(self.line, event.value, event.style is None or event.style == ""))
        elif isinstance(event, yaml.SequenceStartEvent):
            return self._begin(event, Sequence(self.line, []))
        elif isinstance(event, yaml.MappingStartEvent):
            return self._begin(event, Mapping(self.line, []))
        elif isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent):
            self._open.pop()
            self._keys.pop()
        return True

    def _begin(self, event: yaml.CollectionStartEvent, node: Sequence | Mapping) -> bool:
        self._check_properties(event)
        self._add(node)
        self._open.append(node)
        self._keys.append(None)
        if len(self._open) > MAX_DEPTH:
            self._faults.error(self.line, "", f"nested deeper than {MAX_DEPTH} levels")
            return False
        return True

    def _check_properties(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> None:
        if event.anchor is not None:
            self._faults.error(self.line, "", f"anchor &{event.anchor}: anchors are not supported")
        if event.tag is not None:
            self._faults.error(self.line, "", f"tag {event.tag!r}: tags are not supported")

    def _add(self, node: Node) -> None:
        if not self._open:
            self.root = node
            return
        parent = self._open[-1]
        if isinstance(parent, Sequence):
            parent.items.append(node)
            return
        key = self._keys[-1]
        if key is None:
            self._keys[-1] = node
        else:
            parent.pairs.append((key, node))
            self._keys[-1] = None
