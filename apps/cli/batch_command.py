"""`vsrt batch`: steps of actions over what queries find, with a result for each item, that go on after a failure."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from apps.cli.batch_results import BatchResults
from apps.cli.called import SECTIONS, SnapshotNames
from apps.cli.common import InputError, emit_json, emit_table, printable
from apps.cli.progress import ProgressBar
from apps.cli.reach import add_source, open_source
from apps.cli.show_selection import read_group
from apps.cli.snapshot_source import SnapshotSource
from apps.cli.whole_files import write_new
from apps.workflows.doing import done_in_turn, results_beside, resumable
from apps.workflows.planned import WorkflowPlan, begun_at, planned, workflow_file
from controller.workflows.workflow import Workflow

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
        command.add_argument("--at", metavar="ID", help="what it is begun at: a switch, SWITCH:PORT, group or host")
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
    write_new(args.file, SAMPLE)
    if args.json:
        emit_json({"file": str(args.file)})
    else:
        print(f"{args.file}: say in it what is to be done, then `vsrt batch check {args.file}`")
    return 0


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
            yield path, workflow_file(path)[0]
            continue
        for below in sorted(path.glob("*.yaml")):
            with suppress(InputError):
                yield below, workflow_file(below)[0]


def _planned(args: argparse.Namespace) -> tuple[SnapshotSource, WorkflowPlan]:
    """Return the controller, and what the workflow would do there."""
    source = open_source(args)
    return source, planned(args.file, source, _key(args, source))


def _key(args: argparse.Namespace, source: SnapshotSource) -> str | None:
    """Return the key of the document that `--at` names."""
    if args.at is None:
        return None
    try:
        chosen = begun_at(workflow_file(args.file)[0])
    except InputError as error:
        raise InputError(f"{args.file}: {error}") from None
    called = SnapshotNames(next(source.follow(SECTIONS)))
    match "" if chosen is None else chosen.what:
        case "switches":
            return str(called.switch(args.at, "--at"))
        case "ports":
            return "{}:{}".format(*called.port(args.at, "--at"))
        case "groups":
            return read_group(args.at, "--at")
    return str(args.at).lower()


def _check(args: argparse.Namespace) -> int:
    plan = _planned(args)[1]
    rows = [(step.name, len(plan.items[step.name]), " ".join(step.words)) for step in plan.workflow.steps]
    if args.json:
        emit_json({"about": plan.workflow.about, "steps": [{"name": n, "items": c, "do": d} for n, c, d in rows]})
    else:
        emit_table(("STEP", "ITEMS", "DO"), rows)
    return 0


def _start(args: argparse.Namespace) -> int:
    source, plan = _planned(args)
    path = args.results or results_beside(args.file)
    return _go_on(args, source, plan.workflow, BatchResults.new(path, args.file, plan.data, plan.items, plan.at))


def _resume(args: argparse.Namespace) -> int:
    results, source = BatchResults.read(args.results), open_source(args)
    return _go_on(args, source, resumable(results, source), results)


def _go_on(args: argparse.Namespace, source: SnapshotSource, workflow: Workflow, results: BatchResults) -> int:
    """Do what is not done yet, up to the first item that fails."""
    told: list[Mapping[str, Any]] = []
    bar = ProgressBar()
    try:
        bar.draw("items", *results.counts())
        for record in done_in_turn(workflow, results, source):
            told.append(record)
            bar.clear()
            if not args.json and record["state"] == "done":
                print(f"{record['step']}: {printable(record['text'])}", flush=True)
            bar.draw("items", *results.counts())
    finally:
        bar.clear()
    failures = [each for each in told if each["state"] == "failed"]
    done, total = results.counts()
    if args.json:
        emit_json({"results": str(results.path), "done": done, "items": total, "told": told})
        return int(bool(failures))
    for each in failures:
        print(f"vsrt: {each['step']}: {printable(each['text'])}", file=sys.stderr)
    print(f"{done} of {total} items are done; results in {results.path}")
    if failures:
        print(f"`vsrt batch resume {results.path}` goes on with what is not done")
    return int(bool(failures))
