"""The part of a policy file that is the same for all controllers of a fabric, as a text of its own."""

from __future__ import annotations

import hashlib
from typing import Any

import yaml

LOCAL_SECTIONS = frozenset({"cluster", "dashboard", "monitor", "scaling", "topology"})
"""What each machine has for itself: its store, page and outputs, and a file of its own that says what is expected."""

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_WIDTH = 1 << 20


def shared_text(text: str) -> str:
    """Return the common sections of a policy file, a text that `load_policy` takes, without comments and layout."""
    return _written([pair for pair in _pairs(text) if pair[0].value not in LOCAL_SECTIONS])


def merged_text(own: str, shared: str) -> str:
    """Return a policy file with the common sections of `shared` and those of one machine of `own`.

    ValueError where one of them is no policy file's text.
    """
    common = [pair for pair in _pairs(shared) if pair[0].value not in LOCAL_SECTIONS]
    return _written(common + [pair for pair in _pairs(own) if pair[0].value in LOCAL_SECTIONS])


def digest_of(shared: str) -> str:
    """Return the SHA-256 of common sections, in hexadecimal digits."""
    return hashlib.sha256(shared.encode()).hexdigest()


def _pairs(text: str) -> list[tuple[Any, Any]]:
    """Return the sections of a text; ValueError where it has none."""
    try:
        root = yaml.compose(text.removeprefix("\ufeff"), Loader=_LOADER)
    except yaml.YAMLError as error:
        raise ValueError(f"it is no YAML text ({error})") from error
    if not isinstance(root, yaml.MappingNode):
        raise ValueError("it is no mapping of sections")
    return list(root.value)


def _written(pairs: list[tuple[Any, Any]]) -> str:
    root = yaml.MappingNode("tag:yaml.org,2002:map", pairs)
    waiting: list[Any] = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, yaml.CollectionNode):
            node.flow_style = False
            waiting += (
                node.value if isinstance(node, yaml.SequenceNode) else [each for two in node.value for each in two]
            )
    return str(yaml.serialize(root, Dumper=_DUMPER, width=_WIDTH, allow_unicode=True))
