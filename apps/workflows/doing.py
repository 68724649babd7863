"""Does what of a workflow is not done yet, item by item, and writes down what became of each."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from apps.cli import do_command
from apps.cli.batch_results import BatchResults, digest_of
from apps.cli.common import InputError, OperationFailed
from apps.cli.do_words import do_arguments
from apps.cli.snapshot_source import SnapshotSource
from apps.workflows.planned import refuse_drains, workflow_file
from controller.workflows.workflow import AT, InputMissing, Workflow, filled

Record = dict[str, Any]


def resumable(results: BatchResults, source: SnapshotSource) -> Workflow:
    """Return the workflow of a run that is to go on; InputError where it is another one now, or drains too many."""
    workflow, data = workflow_file(results.workflow)
    if digest_of(data) != results.digest:
        raise InputError(f"{results.workflow}: the workflow is another one than that of {results.path}")
    left = {
        step: [item for number, item in enumerate(items) if not results.is_done(step, number)]
        for step, items in results.items.items()
    }
    refuse_drains(source, results.workflow, workflow, left, results.at)
    return workflow


def done_in_turn(
    workflow: Workflow,
    results: BatchResults,
    source: SnapshotSource,
    goes_on: Callable[[], bool] = lambda: True,
) -> Iterator[Record]:
    """Do what is not done yet, up to the first item that fails or until `goes_on` says no; yield what became of each.

    A failure has the state ``failed``; OperationFailed is raised where the results cannot be written.
    """
    for step in workflow.steps:
        for number, item in enumerate(results.items[step.name]):
            if results.is_done(step.name, number):
                continue
            if not goes_on():
                return
            results.tell(step.name, number, "begun")
            answers: Mapping[str, Mapping[str, Any]] = {**results.answers(), AT: results.at or {}}
            try:
                words = do_arguments(filled(step.words, item, answers), argparse.Namespace())
                answer, text = do_command.perform(words, source)
            except (InputError, OperationFailed, InputMissing) as error:
                yield results.tell(step.name, number, "failed", str(error))
                return
            yield results.tell(step.name, number, "done", text, answer)


def results_beside(workflow: Path) -> Path:
    """Return where the results of a workflow are written unless somebody says otherwise."""
    return workflow.with_name(f"{workflow.name}.results.jsonl")
