"""`vsrt batch`: steps of actions over what queries find, with a result for each item, that go on after a failure."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from apps.cli import do_command
from apps.cli.batch_results import BatchResults, digest_of, fields_of
from apps.cli.called import SECTIONS
from apps.cli.common import InputError, OperationFailed, emit_json, emit_table, printable
from apps.cli.do_words import Words, do_arguments
from apps.cli.reach import add_source, open_source
from apps.cli.show_selection import DocumentSelection, add_selection
from apps.cli.snapshot_source import SnapshotSource
from controller.config.faults import PolicyInvalid
from controller.wire.dpids import parse_dpid
from controller.workflows.workflow import (
    InputMissing,
    Workflow,
    WorkflowStep,
    filled,
    inputs_of,
    read_workflow,
    too_many_drained,
)

SAMPLE = """\
# What is done, in order. `do` has the words of `vsrt do`, `for_each` those of `vsrt show`; nothing is run by a shell.
version: 1
about: label the cores, and give cam7 an address that port 7 of leaf1 gets
categories: [cameras]
min_ready_pct: 75
steps:
  - {name: label, for_each: switches --select tier=core, do: "label add {item.dpid} work=planned"}
  - {name: address, do: address take video --name cam7}
  - {name: member, do: "static-member add {address.address} leaf1:7"}
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verbs and what each needs."""
    parser.epilog = (
        "Status 0: done; 1: an item failed or was refused, and what is after it was not begun; 2: bad input, or a "
        "workflow that would drain more than may be, and nothing is done."
    )
    verbs = parser.add_subparsers(required=True, metavar="init|list|check|run|resume")
    init = verbs.add_parser("init", help="write a workflow to begin with")
    init.add_argument("file", type=Path, metavar="FILE", help="workflow (YAML), which must not be there")
    listed = verbs.add_parser("list", help="name the workflows of files and folders, and what they are about")
    listed.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="workflows, or folders of them (.)")
    listed.add_argument("--category", metavar="NAME", help="only those of this category")
    check = verbs.add_parser("check", help="say what would be done for what, and do nothing")
    start = verbs.add_parser("run", help="do all steps, and write down what became of each item")
    for command in (check, start):
        command.add_argument("file", type=Path, metavar="FILE", help="workflow (YAML)")
        add_source(command)
    start.add_argument("--results", type=Path, metavar="FILE", help="(FILE.results.jsonl), which must not be there")
    resume = verbs.add_parser("resume", help="go on with what is not done, after a failure or a kill")
    resume.add_argument("results", type=Path, metavar="RESULTS", help="results of the run")
    add_source(resume)
    for command, run_verb in ((init, _init), (listed, _list), (check, _check), (start, _start), (resume, _resume)):
        command.set_defaults(run_verb=run_verb)


def run(args: argparse.Namespace) -> int:
    """Do what was asked for."""
    return int(args.run_verb(args))


def _init(args: argparse.Namespace) -> int:
    try:
        with args.file.open("x", encoding="utf-8") as file:
            file.write(SAMPLE)
    except FileExistsError:
        raise InputError(f"{args.file}: the file is there already, and is left as it is") from None
    except OSError as error:
        raise OperationFailed(f"{args.file}: {error.strerror or error}") from None
    if args.json:
        emit_json({"file": str(args.file)})
    else:
        print(f"{args.file}: say in it what is to be done, then `vsrt batch check {args.file}`")
    return 0


def _read(path: Path) -> tuple[Workflow, bytes]:
    try:
        data = path.read_bytes()
        return read_workflow(data, str(path)), data
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except PolicyInvalid as fault:
        raise InputError(str(fault)) from None


def _list(args: argparse.Namespace) -> int:
    found = [
        (path, workflow)
        for path, workflow in _workflows(args.paths or [Path()])
        if args.category is None or args.category in workflow.categories
    ]
    if args.json:
        emit_json(
            [
                {
                    "file": str(path),
                    "about": workflow.about,
                    "categories": list(workflow.categories),
                    "steps": [step.name for step in workflow.steps],
                }
                for path, workflow in found
            ]
        )
        return 0
    rows = [
        (path, ",".join(workflow.categories) or "-", len(workflow.steps), workflow.about or "-")
        for path, workflow in found
    ]
    emit_table(("FILE", "CATEGORIES", "STEPS", "ABOUT"), rows)
    return 0


def _workflows(paths: Sequence[Path]) -> Iterator[tuple[Path, Workflow]]:
    """Yield the workflows of files, and those that folders have; InputError for a file that is none."""
    for path in paths:
        if not path.is_dir():
            yield path, _read(path)[0]
            continue
        for below in sorted(path.glob("*.yaml")):
            with suppress(InputError):
                yield below, _read(below)[0]


def _planned(args: argparse.Namespace, path: Path) -> tuple[Workflow, bytes, dict[str, list[dict[str, Any]]]]:
    """Return the workflow and the items of each step; InputError for words without sense, and for too many drains."""
    workflow, data = _read(path)
    source = open_source(args)
    items = {step.name: _items(path, step, source) for step in workflow.steps}
    for step in workflow.steps:
        for item in items[step.name]:
            try:
                # What earlier steps will answer is not known yet: any word may stand there meanwhile.
                answers = {origin: {name: "1"} for origin, name in inputs_of(step.words) if origin != "item"}
                do_arguments(filled(step.words, item, answers), args)
            except (InputError, InputMissing) as error:
                raise InputError(f"{path}:{step.line}: {step.name}: {error}") from None
    _refuse_drains(source, path, workflow, items)
    return workflow, data, items


def _items(path: Path, step: WorkflowStep, source: SnapshotSource) -> list[dict[str, Any]]:
    if not step.for_each:
        return [{}]
    parser = Words(add_help=False)
    add_selection(parser)
    try:
        chosen = DocumentSelection(parser.parse_args(step.for_each))
        snapshot = next(source.follow(chosen.table.sections, beside=SECTIONS))
        found = fields_of(list(chosen.items(snapshot)))
    except InputError as error:
        raise InputError(f"{path}:{step.line}: for_each of {step.name}: {error}") from None
    if not found:
        note = chosen.note(snapshot) or f"there are no {chosen.what} such as these"
        raise InputError(f"{path}:{step.line}: for_each of {step.name}: {note}")
    return found


def _refuse_drains(
    source: SnapshotSource, path: Path, workflow: Workflow, items: Mapping[str, Sequence[dict[str, Any]]]
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
                text = filled(step.words[1:2], item, {})[0]
                steps.append((step.name, names.get(text) or parse_dpid(text), step.words[0] == "drain"))
            except (InputMissing, ValueError) as error:
                what = f"nobody can say before which switch that is ({error})"
                raise InputError(f"{path}:{step.line}: {step.name}: {what}") from None
    wrong = too_many_drained(tiers, drained, steps, workflow.min_ready_pct)
    if wrong:
        raise InputError(f"{path}: {wrong}")


def _check(args: argparse.Namespace) -> int:
    workflow, _, items = _planned(args, args.file)
    rows = [(step.name, len(items[step.name]), " ".join(step.words)) for step in workflow.steps]
    if args.json:
        emit_json({"about": workflow.about, "steps": [{"name": n, "items": c, "do": d} for n, c, d in rows]})
    else:
        emit_table(("STEP", "ITEMS", "DO"), rows)
    return 0


def _start(args: argparse.Namespace) -> int:
    workflow, data, items = _planned(args, args.file)
    path = args.results or args.file.with_name(f"{args.file.name}.results.jsonl")
    return _go_on(args, workflow, BatchResults.new(path, args.file, data, items))


def _resume(args: argparse.Namespace) -> int:
    results = BatchResults.read(args.results)
    workflow, data = _read(results.workflow)
    if digest_of(data) != results.digest:
        raise InputError(f"{results.workflow}: the workflow is another one than that of {args.results}")
    left = {
        step: [item for number, item in enumerate(items) if not results.is_done(step, number)]
        for step, items in results.items.items()
    }
    _refuse_drains(open_source(args), results.workflow, workflow, left)
    return _go_on(args, workflow, results)


def _go_on(args: argparse.Namespace, workflow: Workflow, results: BatchResults) -> int:
    """Do what is not done yet, up to the first item that fails."""
    told = []
    for step in workflow.steps:
        for number, item in enumerate(results.items[step.name]):
            if results.is_done(step.name, number):
                continue
            results.tell(step.name, number, "begun")
            try:
                answer, text = do_command.perform(do_arguments(filled(step.words, item, results.answers()), args))
                told.append(results.tell(step.name, number, "done", text, answer))
            except (InputError, OperationFailed, InputMissing) as error:
                told.append(results.tell(step.name, number, "failed", str(error)))
                _print(args, results, told)
                return 1
            if not args.json:
                print(f"{step.name}: {text}", flush=True)
    _print(args, results, told)
    return 0


def _print(args: argparse.Namespace, results: BatchResults, told: Sequence[Mapping[str, Any]]) -> None:
    failed = [record for record in told if record["state"] == "failed"]
    total = sum(len(items) for items in results.items.values())
    done = sum(results.is_done(step, number) for step, items in results.items.items() for number in range(len(items)))
    if args.json:
        emit_json({"results": str(results.path), "done": done, "items": total, "told": list(told)})
        return
    for record in failed:
        print(f"vsrt: {record['step']}: {printable(record['text'])}", file=sys.stderr)
    print(f"{done} of {total} items are done; results in {results.path}")
    if failed:
        print(f"`vsrt batch resume {results.path}` goes on with what is not done")
