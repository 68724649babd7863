"""Files of workflows, and what stands in their words for items and for answers of earlier steps."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from controller.config.document import MAX_BYTES, Node, Sequence, decode, parse
from controller.config.faults import Faults, PolicyInvalid, quoted
from controller.config.read import NodeReader

MAX_STEPS = 256
MAX_CATEGORIES = 16
MIN_READY_PCT = 75
"""Switches of each tier that stay in use unless a workflow says otherwise."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}\Z")
_INPUT = re.compile(r"\{([A-Za-z][A-Za-z0-9_-]*)\.([A-Za-z_][A-Za-z0-9_]*)\}")
ITEM, AT = "item", "at"
"""What words stand for beside steps: the document that a step is done for, and the one that a run is begun at."""


class WorkflowStep(NamedTuple):
    """A step: the words of `vsrt do` that it is, and those of `vsrt show` that say for what, none for once."""

    name: str
    words: tuple[str, ...]
    for_each: tuple[str, ...]
    line: int


class Workflow(NamedTuple):
    """Steps in order, what they are about, and which part of each tier's switches must stay in use, %.

    `at` are words of `vsrt show` that choose the documents at one of which it is begun; empty where it is at none.
    """

    about: str
    categories: tuple[str, ...]
    min_ready_pct: float
    steps: tuple[WorkflowStep, ...]
    at: tuple[str, ...] = ()


class InputMissing(ValueError):  # noqa: N818
    """What a word stands for is not there; the text says what."""


def read_workflow(data: bytes, source: str) -> Workflow:
    """Return the workflow of a file; PolicyInvalid with all its faults, each with its line."""
    faults = Faults()
    if len(data) > MAX_BYTES:
        faults.error(1, "", f"the file is larger than {MAX_BYTES} bytes")
        raise PolicyInvalid(faults.errors(), source)
    text = decode(data, faults)
    root = None if text is None else parse(text, faults)
    workflow = None if root is None else _workflow(NodeReader(faults), root)
    if workflow is None or faults.any_error:
        raise PolicyInvalid(faults.errors(), source)
    return workflow


def _workflow(reader: NodeReader, root: Node) -> Workflow | None:
    keys = ("version", "about", "categories", "at", "min_ready_pct", "steps")
    found = reader.record(root, "", keys, ("version", "steps"), what="a mapping with version and steps")
    if found is None or "steps" not in found:
        return None
    if "version" in found:
        reader.integer(found["version"][1], "version", 1, 1)
    about = reader.text(found["about"][1], "about", "a text") if "about" in found else ""
    categories = _categories(reader, found["categories"][1]) if "categories" in found else ()
    at = _words(reader, found["at"][1], "at") if "at" in found else ()
    if inputs_of(at):
        reader.faults.error(found["at"][0], "at", "it is asked before anything is known: nothing can be put in")
    share = reader.number(found["min_ready_pct"][1], "min_ready_pct", 0, 100) if "min_ready_pct" in found else None
    node = found["steps"][1]
    if isinstance(node, Sequence) and not 0 < len(node.items) <= MAX_STEPS:
        reader.faults.error(node.line, "steps", f"{len(node.items)} steps; 1 to {MAX_STEPS} are possible")
    names: dict[str, bool] = {}
    steps = reader.items(
        node, "steps", "a list of steps", lambda child, path: _step(reader, child, path, names, bool(at))
    )
    return Workflow(about or "", categories, MIN_READY_PCT if share is None else share, tuple(steps), at)


def _categories(reader: NodeReader, node: Node) -> tuple[str, ...]:
    if isinstance(node, Sequence) and len(node.items) > MAX_CATEGORIES:
        count = len(node.items)
        reader.faults.error(node.line, "categories", f"{count} categories; {MAX_CATEGORIES} are possible")
    return tuple(reader.items(node, "categories", "a list of names", lambda one, path: _category(reader, one, path)))


def _category(reader: NodeReader, node: Node, path: str) -> str | None:
    name = reader.text(node, path, "a name")
    if name is not None and not _NAME.match(name):
        reader.faults.error(node.line, path, f"{quoted(name)} is no name: letters, digits, _ and -")
    return name


def _step(reader: NodeReader, node: Node, path: str, names: dict[str, bool], is_at_one: bool) -> WorkflowStep | None:
    """Return a step; `names` has the steps before it, and whether each is done once, so that it has one answer."""
    found = reader.record(node, path, ("name", "do", "for_each"), ("name", "do"), what="{name: ..., do: ...}")
    if found is None or not {"name", "do"} <= set(found):
        return None
    name = reader.text(found["name"][1], f"{path}.name", "a name") or ""
    words = _words(reader, found["do"][1], f"{path}.do")
    for_each = _words(reader, found["for_each"][1], f"{path}.for_each") if "for_each" in found else ()
    if not _NAME.match(name) or name in (ITEM, AT) or name in names:
        reader.faults.error(found["name"][0], f"{path}.name", f"{quoted(name)} is no name, or one that is taken")
    if inputs_of(words[:1]):
        reader.faults.error(found["do"][0], f"{path}.do", "what is done is said by the workflow, and by no item")
    for origin, _field in inputs_of(words):
        if wrong := _why_no_input(origin, names, has_item=bool(for_each), is_at_one=is_at_one):
            reader.faults.error(found["do"][0], f"{path}.do", wrong)
    for origin, _field in inputs_of(for_each):
        wrong = "queries are asked before anything is done"
        if origin == AT:
            wrong = _why_no_input(origin, names, has_item=False, is_at_one=is_at_one)
        if wrong:
            reader.faults.error(found["for_each"][0], f"{path}.for_each", wrong)
    names[name] = not for_each
    return WorkflowStep(name, words, for_each, node.line)


def _why_no_input(origin: str, names: Mapping[str, bool], *, has_item: bool, is_at_one: bool) -> str:
    """Say why there is nothing of an origin to put in; empty where there is."""
    if origin == AT:
        return "" if is_at_one else "there is nothing that it is begun at: the workflow has no `at`"
    if origin == ITEM:
        return "" if has_item else "there is no item: the step has no `for_each`"
    if origin not in names:
        return f"there is no step {quoted(origin)} before this one"
    return "" if names[origin] else f"{quoted(origin)} is done for each item: it has no answer"


def _words(reader: NodeReader, node: Node, path: str) -> tuple[str, ...]:
    text = reader.text(node, path, "words, as on a command line")
    if text is None:
        return ()
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        reader.faults.error(node.line, path, f"{quoted(text)}: {error}")
        return ()
    if not words:
        reader.faults.error(node.line, path, "no words")
    return words


def inputs_of(words: Iterable[str]) -> list[tuple[str, str]]:
    """Return what words stand for: the item or the step, and the field of it."""
    return [(match[1], match[2]) for word in words for match in _INPUT.finditer(word)]


def filled(
    words: Iterable[str], item: Mapping[str, Any] | None, answers: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Return words with what they stand for in its place.

    `answers` are those of steps, by their names, and under `AT` the fields of what the run is begun at. Each stays
    one word, whatever stands in it, and none becomes an option. InputMissing where a field is not there, or is no
    text or number.
    """

    def put(match: re.Match[str]) -> str:
        origin, name = match[1], match[2]
        fields = (item or {}) if origin == ITEM else answers.get(origin, {})
        value = fields.get(name)
        if not isinstance(value, str | int) or isinstance(value, bool):
            raise InputMissing(f"{{{origin}.{name}}} stands for nothing")
        return str(value)

    found = []
    for word in words:
        text = _INPUT.sub(put, word)
        if text.startswith("-") and not word.startswith("-"):
            raise InputMissing(f"{word} stands for {text!r}, which would be an option")
        found.append(text)
    return found


def too_many_drained(
    tiers: Mapping[int, str], drained: Iterable[int], steps: Iterable[tuple[str, int, bool]], min_ready_pct: float
) -> str:
    """Return which step would drain more of a tier than may be, '' where none does.

    Parameters
    ----------
    tiers
        Every switch's redundancy group, by datapath id.
    drained
        The switches that are drained before.
    steps
        What is done in turn: the name of the step, a datapath id, and whether it is drained or used again.
    min_ready_pct
        Part of each group that stays in use, 0 to 100 %, rounded down to whole switches; one stays at least.
    """
    out = {dpid for dpid in drained if dpid in tiers}
    sizes: dict[str, int] = {}
    for tier in tiers.values():
        sizes[tier] = sizes.get(tier, 0) + 1
    for name, dpid, is_drained in steps:
        if not is_drained or dpid not in tiers:
            out.discard(dpid)
            continue
        out.add(dpid)
        tier = tiers[dpid]
        count = sum(tiers[other] == tier for other in out)
        stay = max(1, int(sizes[tier] * min_ready_pct / 100))
        if sizes[tier] - count < stay:
            return (
                f"step {name}: {count} of the {sizes[tier]} switches of {tier} would be drained, and {stay} must "
                f"stay in use (min_ready_pct: {min_ready_pct:g}, one at least)"
            )
    return ""
