"""What a workflow would do now: its items, and why it is refused where it would do what it must not."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from apps.cli.batch_results import fields_of
from apps.cli.called import SECTIONS
from apps.cli.common import InputError
from apps.cli.do_words import Words, do_arguments
from apps.cli.show_selection import DocumentSelection, add_selection
from apps.cli.snapshot_source import SnapshotSource
from controller.config.faults import PolicyInvalid
from controller.snapshot.reader import Document, Snapshot
from controller.wire.dpids import parse_dpid
from controller.workflows.workflow import (
    AT,
    ITEM,
    InputMissing,
    Workflow,
    WorkflowStep,
    filled,
    inputs_of,
    read_workflow,
    too_many_drained,
)

KINDS = {"switch": "switches", "port": "ports", "group": "groups", "host": "hosts"}
"""What a workflow can be begun at, and the section of the documents of each."""

Fields = dict[str, Any]


class WorkflowPlan(NamedTuple):
    """A workflow, its file, the items of each step, and the fields of what it is begun at."""

    workflow: Workflow
    data: bytes
    items: dict[str, list[Fields]]
    at: Fields | None = None


def workflow_file(path: Path) -> tuple[Workflow, bytes]:
    """Return the workflow of a file, and the file; InputError where it is none."""
    try:
        data = path.read_bytes()
        return read_workflow(data, str(path)), data
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except PolicyInvalid as fault:
        raise InputError(str(fault)) from None


def selection_of(words: Sequence[str]) -> DocumentSelection:
    """Return the documents that words of `vsrt show` choose; InputError where these make no sense."""
    parser = Words(add_help=False)
    add_selection(parser)
    return DocumentSelection(parser.parse_args(list(words)))


def begun_at(workflow: Workflow) -> DocumentSelection | None:
    """Return what a workflow can be begun at, None where it is at nothing; InputError where its words say nothing."""
    if not workflow.at:
        return None
    try:
        chosen = selection_of(workflow.at)
    except InputError as error:
        raise InputError(f"at: {error}") from None
    if chosen.what not in KINDS.values():
        raise InputError(f"at: a workflow is begun at one of {', '.join(KINDS.values())}, and not of {chosen.what}")
    return chosen


def offered_at(workflow: Workflow, document: Document, section: str, snapshot: Snapshot) -> bool:
    """Tell whether a workflow is about a document: it is begun at such, or is at nothing and a query finds it.

    InputError where its words make no sense.
    """
    at = begun_at(workflow)
    if at is not None:
        return at.what == section and at.chooses(document, snapshot)
    queries = [step.for_each for step in workflow.steps if step.for_each[:1] == (section,)]
    return any(selection_of(words).chooses(document, snapshot) for words in queries)


def planned(path: Path, source: SnapshotSource, key: str | None = None) -> WorkflowPlan:
    """Return what a workflow would do now, begun at the document of a key.

    InputError for words without sense, where there is nothing to be done, and for too many drains.
    """
    workflow, data = workflow_file(path)
    at = _begin(path, workflow, source, key)
    items = {step.name: _items(path, step, source, at) for step in workflow.steps}
    for step in workflow.steps:
        for item in items[step.name]:
            try:
                # What earlier steps will answer is not known yet: any word may stand there meanwhile.
                answers = {origin: {name: "1"} for origin, name in inputs_of(step.words) if origin not in (ITEM, AT)}
                do_arguments(filled(step.words, item, {**answers, AT: at or {}}), argparse.Namespace())
            except (InputError, InputMissing) as error:
                raise InputError(f"{path}:{step.line}: {step.name}: {error}") from None
    refuse_drains(source, path, workflow, items, at)
    return WorkflowPlan(workflow, data, items, at)


def _begin(path: Path, workflow: Workflow, source: SnapshotSource, key: str | None) -> Fields | None:
    try:
        chosen = begun_at(workflow)
        if chosen is None:
            if key is not None:
                raise InputError("the workflow is begun at nothing: it has no `at`")
            return None
        if key is None:
            raise InputError(f"it is begun at one of `{' '.join(workflow.at)}`, and none is named")
        snapshot = next(source.follow(chosen.table.sections, beside=SECTIONS))
        document = snapshot.section(chosen.what).documents.get(key)
        if document is None or not chosen.chooses(document, snapshot):
            raise InputError(f"{key} is none of `{' '.join(workflow.at)}`, at which it is begun")
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return fields_of([document])[0]


def _items(path: Path, step: WorkflowStep, source: SnapshotSource, at: Fields | None) -> list[Fields]:
    if not step.for_each:
        return [{}]
    try:
        chosen = selection_of(filled(step.for_each, None, {AT: at or {}}))
        snapshot = next(source.follow(chosen.table.sections, beside=SECTIONS))
        found = fields_of(list(chosen.items(snapshot)))
    except (InputError, InputMissing) as error:
        raise InputError(f"{path}:{step.line}: for_each of {step.name}: {error}") from None
    if not found:
        note = chosen.note(snapshot) or f"there are no {chosen.what} such as these"
        raise InputError(f"{path}:{step.line}: for_each of {step.name}: {note}")
    return found


def refuse_drains(
    source: SnapshotSource,
    path: Path,
    workflow: Workflow,
    items: Mapping[str, Sequence[Fields]],
    at: Fields | None,
) -> None:
    """Refuse, by InputError, a workflow by which more of a tier's switches would be drained than may be."""
    snapshot = next(source.follow(SECTIONS))
    switches = [document.fields for document in snapshot.section("switches").documents.values()]
    names = {fields.get("name"): fields["dpid"] for fields in switches}
    tiers = {f["dpid"]: f"{f.get('fabric') or 'the fabric'}, tier {f.get('tier') or 'none'}" for f in switches}
    drained = [fields["dpid"] for fields in switches if fields.get("drained")]
    steps: list[tuple[str, int, bool]] = []
    for step in workflow.steps:
        if step.words[0] not in ("drain", "undrain"):
            continue
        for item in items[step.name]:
            try:
                text = filled(step.words[1:2], item, {AT: at or {}})[0]
                steps.append((step.name, names.get(text) or parse_dpid(text), step.words[0] == "drain"))
            except (InputMissing, ValueError) as error:
                what = f"nobody can say before which switch that is ({error})"
                raise InputError(f"{path}:{step.line}: {step.name}: {what}") from None
    wrong = too_many_drained(tiers, drained, steps, workflow.min_ready_pct)
    if wrong:
        raise InputError(f"{path}: {wrong}")
