"""On which line of a policy file a verdict stands, by the name that verdicts have."""

from __future__ import annotations

from controller.config.document import Mapping, Node, Scalar, Sequence, parse
from controller.config.faults import Faults


def verdict_line(text: str, name: str) -> int | None:
    """Return the line of a rule, of ``default``, or of a setting such as ``limits.groups``; None where it has none.

    Parameters
    ----------
    text
        The policy file.
    name
        As decisions have it in ``rule``.
    """
    root = parse(text, Faults())
    for rule in _items(_value(root, "rules")):
        named = _value(rule, "name")
        if isinstance(named, Scalar) and named.text == name:
            return rule.line
    found: Node | None = root
    line = None
    for word in name.split("."):
        pair = _pair(found, word)
        if pair is None:
            return None
        line, found = pair[0].line, pair[1]
    return line


def _items(node: Node | None) -> list[Node]:
    return node.items if isinstance(node, Sequence) else []


def _value(node: Node | None, name: str) -> Node | None:
    pair = _pair(node, name)
    return None if pair is None else pair[1]


def _pair(node: Node | None, name: str) -> tuple[Node, Node] | None:
    if not isinstance(node, Mapping):
        return None
    return next((pair for pair in node.pairs if isinstance(pair[0], Scalar) and pair[0].text == name), None)
