"""YAML and JSON files of other programs: their values with the lines on which they stand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import yaml

from controller.config.faults import quoted
from controller.migration.report import BadConfiguration, Fault, InputFile, Place

MAX_BYTES = 4 << 20
MAX_ENTRIES = 2_000_000
"""Entries of mappings and lists that are looked at; aliases let a small file have any number of them."""

_LOADER: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CONSTRUCTOR = yaml.constructor.SafeConstructor()
_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"


class YamlEntry(NamedTuple):
    """An entry of a mapping: its key as text, the node of the key, the node of the value, and the lines of both."""

    key: str
    key_node: yaml.Node
    node: yaml.Node
    place: Place


class YamlFile:
    """One file's nodes. What is wrong with them is collected in `faults`.

    Raises
    ------
    BadConfiguration
        The text is no YAML, or larger than `MAX_BYTES`.
    """

    def __init__(self, source: InputFile, faults: list[Fault]) -> None:
        self.name = source.name
        self.faults = faults
        self.merges: list[Place] = []
        """Where entries are merged in, of the mappings that were looked at."""
        self._entries_left = MAX_ENTRIES
        self._lasts: dict[int, int] = {}
        if len(source.text) > MAX_BYTES:
            raise BadConfiguration([Fault(source.name, 0, f"the file is larger than {MAX_BYTES} bytes")])
        try:
            loader = _LOADER(source.text)
            try:
                self.root = loader.get_single_node()
            finally:
                loader.dispose()
        except (yaml.YAMLError, RecursionError, ValueError, IndexError, OverflowError) as error:
            raise BadConfiguration([_syntax_fault(source, error)]) from None

    def fault(self, node: yaml.Node, message: str) -> None:
        """Record that a value cannot be used."""
        self.faults.append(Fault(self.name, node.start_mark.line + 1, message))

    def place(self, node: yaml.Node) -> Place:
        """Return the lines of a value."""
        return Place(self.name, node.start_mark.line + 1, self._last(node))

    def entries(self, node: yaml.Node, what: str) -> dict[str, YamlEntry]:
        """Return the entries of a mapping by their keys; none, with a fault, where it is not one.

        Entries that are merged in (``<<``) count where the mapping has none of its own by their keys.
        """
        if is_null(node):
            return {}
        if not isinstance(node, yaml.MappingNode):
            self.fault(node, f"expected {what}")
            return {}
        found: dict[str, YamlEntry] = {}
        merged: list[yaml.Node] = []
        for key, value in node.value:
            self._count(node)
            if key.tag == _MERGE:
                line = key.start_mark.line + 1
                self.merges.append(Place(self.name, line, line))
                merged += value.value if isinstance(value, yaml.SequenceNode) else [value]
                continue
            if not isinstance(key, yaml.ScalarNode):
                self.fault(key, "a key must be a word or a number")
                continue
            text = str(key.value)
            if text in found:
                self.fault(key, f"{quoted(text)} stands twice, first on line {found[text].place.line}")
            line = key.start_mark.line + 1
            found[text] = YamlEntry(text, key, value, Place(self.name, line, max(line, self._last(value))))
        for other in merged:
            if other is not node:
                for text, entry in self.entries(other, what).items():
                    found.setdefault(text, entry)
        return found

    def items(self, node: yaml.Node, what: str) -> Iterator[yaml.Node]:
        """Yield the items of a list; none, with a fault, where it is not one."""
        if is_null(node):
            return
        if not isinstance(node, yaml.SequenceNode):
            self.fault(node, f"expected {what}")
            return
        for item in node.value:
            self._count(node)
            yield item

    def integer(self, node: yaml.Node, least: int, most: int, what: str) -> int | None:
        """Return a whole number, also one in quotes; None, with a fault, where it is none within the bounds."""
        number: int | None = None
        if isinstance(node, yaml.ScalarNode):
            try:
                number = int(str(node.value), 0) if node.tag == f"{_TAG}str" else int_of(node)
            except ValueError:
                number = None
        if number is None or not least <= number <= most:
            self.fault(node, f"{shown(node)} is no {what} ({least} to {most})")
            return None
        return number

    def boolean(self, node: yaml.Node) -> bool | None:
        """Return a boolean, also one written as 0 or 1; None, with a fault, where it is none."""
        if isinstance(node, yaml.ScalarNode):
            if node.tag == f"{_TAG}bool":
                return bool(_CONSTRUCTOR.construct_yaml_bool(node))
            if node.tag == f"{_TAG}int" and str(node.value) in ("0", "1"):
                return str(node.value) == "1"
        self.fault(node, f"{shown(node)} is neither true nor false")
        return None

    def text(self, node: yaml.Node, what: str) -> str | None:
        """Return a scalar as text; None, with a fault, where it is none."""
        if isinstance(node, yaml.ScalarNode) and not is_null(node):
            return str(node.value)
        self.fault(node, f"expected {what}")
        return None

    def _count(self, node: yaml.Node) -> None:
        self._entries_left -= 1
        if self._entries_left < 0:
            line = node.start_mark.line + 1
            raise BadConfiguration([Fault(self.name, line, f"more than {MAX_ENTRIES} entries, aliases counted")])

    def _last(self, node: yaml.Node) -> int:
        """Return the last line of a value: of what stands in it, and not the empty lines behind it."""
        known = self._lasts.get(id(node))
        if known is not None:
            return known
        line = int(node.start_mark.line) + 1
        self._lasts[id(node)] = line
        if isinstance(node, yaml.ScalarNode):
            end = node.end_mark
            line = max(line, int(end.line) + (1 if end.column or node.style not in ("|", ">") else 0))
        elif getattr(node, "flow_style", False):
            line = int(node.end_mark.line) + 1
        else:
            children = node.value if isinstance(node, yaml.SequenceNode) else [n for pair in node.value for n in pair]
            # An anchor that stands elsewhere has its lines there.
            lasts = [self._last(child) for child in children if child.start_mark.line + 1 >= line]
            ends = int(node.end_mark.line) + 1
            line = max([line, *(last for last in lasts if last <= ends)])
        self._lasts[id(node)] = line
        return line


def is_null(node: yaml.Node) -> bool:
    """Tell whether a value is nothing."""
    return isinstance(node, yaml.ScalarNode) and node.tag == f"{_TAG}null"


def is_integer(node: yaml.Node) -> bool:
    """Tell whether a value is a whole number that stands without quotes."""
    return isinstance(node, yaml.ScalarNode) and node.tag == f"{_TAG}int"


def int_of(node: yaml.ScalarNode) -> int:
    """Return the whole number of a scalar, as YAML 1.1 reads it; ValueError where it is none."""
    if node.tag != f"{_TAG}int":
        raise ValueError(f"{node.value!r} is no whole number")
    return int(_CONSTRUCTOR.construct_yaml_int(node))


def shown(node: yaml.Node) -> str:
    """Return a value as messages show it."""
    if isinstance(node, yaml.ScalarNode):
        return quoted(str(node.value))
    return "a list" if isinstance(node, yaml.SequenceNode) else "a mapping"


def json_faults(source: InputFile) -> list[Fault]:
    """Return what is wrong with a text that is to be one JSON document; nothing where it is one."""
    try:
        json.loads(source.text)
    except json.JSONDecodeError as error:
        return [Fault(source.name, error.lineno, f"JSON syntax, column {error.colno}: {error.msg}")]
    except RecursionError:
        return [Fault(source.name, 0, "JSON that is nested too deeply")]
    return []


def _syntax_fault(source: InputFile, error: Exception) -> Fault:
    mark = getattr(error, "problem_mark", None)
    if isinstance(error, RecursionError):
        return Fault(source.name, 0, "YAML that is nested too deeply")
    problem = getattr(error, "problem", None) or str(error)
    line = min(mark.line + 1, len(source.text.splitlines())) if mark is not None else 0
    return Fault(source.name, line, f"YAML syntax: {problem}")
