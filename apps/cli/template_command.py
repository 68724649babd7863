"""`vsrt template`: desired settings of switches, columns of Open vSwitch's databases, checked, applied and undone."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from apps.cli.called import SECTIONS
from apps.cli.common import InputError, OperationFailed, emit_json, emit_table
from apps.cli.reach import add_source, open_source
from apps.cli.template_databases import TemplateDatabases
from apps.cli.template_history import TemplateHistory, TemplateRun
from apps.cli.times import Clock
from controller.config.faults import PolicyInvalid
from controller.snapshot.reader import Snapshot
from controller.snapshot.selectors import parse_selector, selected
from controller.switch_templates.connection import cuts, in_band_ends
from controller.switch_templates.plan import (
    SettingChange,
    SettingsRow,
    TemplatePlan,
    faults_of,
    plan,
    shown,
    undoing,
)
from controller.switch_templates.templates import SHIPPED, SwitchTemplate, read_templates
from controller.wire.dpids import format_dpid

DEFAULT_DATABASE = "unix:/var/run/openvswitch/db.sock"
HISTORY = "templates.jsonl"
LISTED = 4
"""Switches and ports of a template that `list` names."""

OF_PORTS = frozenset({"Port", "Interface", "QoS", "Queue"})
"""Tables whose rows are of ports, the others are of switches."""

_EXPORTED = ("fail_mode", "protocols", "stp_enable", "rstp_enable", "mcast_snooping_enable", "other_config")
"""Columns of a bridge that `export` writes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verbs and what each needs."""
    parser.epilog = (
        "A template without `select` is about every switch of the databases, and every port that leads outside. "
        "Selectors are answered by the running controller, which knows labels and tiers.\n\n"
        "Status 0: done, or all is as it is desired; 1: something is not, or could not be changed; 2: bad input, "
        "templates that fight, or bad words, and nothing is changed."
    )
    verbs = parser.add_subparsers(required=True, metavar="list|check|apply|history|undo|export")
    for name, help_text, run_verb in (
        ("list", "the templates that there are", _list),
        ("check", "what of the switches is not as templates have it", _check),
        ("apply", "change what is not as templates have it: all of it, or nothing", _apply),
        ("history", "what was applied and undone", _history),
        ("undo", "have the settings that a run changed as they were before it", _undo),
        ("export", "print a template of what a bridge has", _export),
    ):
        verb = verbs.add_parser(name, help=help_text)
        verb.set_defaults(run_verb=run_verb)
        if name in ("list", "check", "apply"):
            verb.add_argument("-f", "--file", type=Path, action="append", default=[], help="file of templates (YAML)")
        if name in ("check", "apply"):
            verb.add_argument("names", nargs="+", metavar="TEMPLATE", help="templates by name")
            add_source(verb)
        if name in ("check", "apply", "undo", "export"):
            verb.add_argument(
                "--db", action="append", default=[], metavar="TARGET", help=f"OVSDB server ({DEFAULT_DATABASE})"
            )
        if name in ("apply", "history", "undo"):
            verb.add_argument("--history", type=Path, metavar="FILE", help=f"({HISTORY} in VSRT_STATE_DIR, or here)")
        if name in ("apply", "undo"):
            verb.add_argument(
                "--may-disconnect",
                action="store_true",
                help="also make changes that can cut switches off from their controller",
            )
        if name == "undo":
            verb.add_argument("number", nargs="?", type=int, metavar="RUN", help="its number (default: the newest)")
        if name == "export":
            verb.add_argument("bridge", metavar="BRIDGE", help="the bridge by its name")


def run(args: argparse.Namespace) -> int:
    """Do what was asked for."""
    return int(args.run_verb(args))


def _templates(args: argparse.Namespace) -> dict[str, SwitchTemplate]:
    """Return the shipped templates and those of files, by name; InputError for a name that stands twice."""
    found: dict[str, SwitchTemplate] = {}
    sources = [("shipped", SHIPPED.encode())]
    for path in args.file:
        try:
            sources.append((str(path), path.read_bytes()))
        except OSError as error:
            raise InputError(f"{path}: {error.strerror or error}") from None
    for name, data in sources:
        try:
            templates = read_templates(data, name)
        except PolicyInvalid as fault:
            raise InputError(str(fault)) from None
        for template in templates:
            if template.name in found:
                raise InputError(f"{template.place}: {template.name} is at {found[template.name].place} already")
            found[template.name] = template
    return found


def _list(args: argparse.Namespace) -> int:
    templates = _templates(args).values()
    if args.json:
        emit_json([_template_document(template) for template in templates])
        return 0
    rows = [
        (
            template.name,
            _about(template),
            ", ".join(s.name for s in template.settings),
            template.about,
        )
        for template in templates
    ]
    emit_table(("TEMPLATE", "SELECT", "SETTINGS", "ABOUT"), rows)
    return 0


def _template_document(template: SwitchTemplate) -> dict[str, Any]:
    settings = [{"table": s.table, "setting": s.name, "value": s.value, "place": s.place} for s in template.settings]
    return {
        "name": template.name,
        "about": template.about,
        "select": template.select,
        "resources": None if template.resources is None else list(map(_written, _in_order(template.resources))),
        "settings": settings,
    }


def _about(template: SwitchTemplate) -> str:
    """Return which switches and ports a template is about."""
    if template.resources is None:
        return template.select or "every switch"
    listed = [_written(each) for each in _in_order(template.resources)]
    more = f" and {len(listed) - LISTED} more" if len(listed) > LISTED else ""
    return " of ".join(filter(None, (template.select, ", ".join(listed[:LISTED]) + more)))


def _in_order(resources: Iterable[tuple[int, int | None]]) -> list[tuple[int, int | None]]:
    return sorted(resources, key=lambda one: (one[0], one[1] or 0))


def _written(resource: tuple[int, int | None]) -> str:
    dpid, port_no = resource
    return format_dpid(dpid) if port_no is None else f"{format_dpid(dpid)}:{port_no}"


def _planned(args: argparse.Namespace) -> tuple[TemplateDatabases, TemplatePlan]:
    """Return the databases, and what is to be changed; InputError for faults, and for templates that fight."""
    known = _templates(args)
    for name in args.names:
        if name not in known:
            raise InputError(f"TEMPLATE: there is no {name!r}; `vsrt template list` tells what there is")
    templates = [known[name] for name in dict.fromkeys(args.names)]
    databases = TemplateDatabases(args.db or [DEFAULT_DATABASE])
    faults = list(faults_of(templates, databases.kinds))
    if faults:
        raise InputError("\n".join(faults))
    found = plan(templates, list(databases.rows.values()), databases.kinds, _meaning(args, templates))
    if found.conflicts:
        raise InputError("templates that fight, and nothing is changed:\n" + "\n".join(map(str, found.conflicts)))
    for name, count in found.row_counts.items():
        if not count:
            raise InputError(f"{known[name].place}: {name} is about no switch and no port of these databases")
    return databases, found


def _meaning(
    args: argparse.Namespace, templates: Sequence[SwitchTemplate]
) -> Callable[[SwitchTemplate, SettingsRow], bool]:
    """Return what tells whether a template is about a row: its selector, by what the running controller knows."""
    chosen: dict[str, tuple[set[Any], set[Any]]] = {}
    if any(template.select for template in templates):
        snapshot: Snapshot = next(open_source(args).follow(SECTIONS))
        switches, ports = snapshot.section("switches"), snapshot.section("ports")
        for template in templates:
            if template.select:
                terms = parse_selector(template.select)
                of_switches = selected(list(switches.documents.values()), terms, switches, ports)
                of_ports = selected(list(ports.documents.values()), terms, switches, ports)
                chosen[template.name] = (
                    {document.fields.get("dpid") for document in of_switches},
                    {(document.fields.get("dpid"), document.fields.get("port_no")) for document in of_ports},
                )

    def is_meant(template: SwitchTemplate, row: SettingsRow) -> bool:
        own = (row.dpid, row.port_no)
        if template.resources is not None and own not in template.resources:
            return False
        if not template.select:
            return True
        switches, ports = chosen[template.name]
        return (row.dpid, row.port_no) in ports if row.table in OF_PORTS else row.dpid in switches

    return is_meant


def _check(args: argparse.Namespace) -> int:
    databases, found = _planned(args)
    databases.close()
    cut, is_desired = cuts(found.changes), not (found.changes or found.obstacles)
    if args.json:
        changed = [_document(change) for change in found.changes]
        told = {"as_desired": is_desired, "changes": changed, "obstacles": list(found.obstacles), "disconnects": cut}
        emit_json(told)
        return 0 if is_desired else 1
    if found.changes:
        _print(found.changes, "IS", "DESIRED")
    for line in (*found.obstacles, *cut, *in_band_ends(found.changes)):
        print(line)
    if is_desired:
        print(f"all as desired: {', '.join(args.names)}")
    return 0 if is_desired else 1


def _refuse_cuts(args: argparse.Namespace, databases: TemplateDatabases, changes: Sequence[SettingChange]) -> None:
    """InputError where changes can cut switches off and nobody said that they may."""
    cut = cuts(changes)
    if cut and not args.may_disconnect:
        databases.close()
        raise InputError(
            "this can cut switches off from their controller, and nothing is changed; --may-disconnect does it:\n"
            + "\n".join(cut)
        )


def _document(change: SettingChange) -> dict[str, Any]:
    return {**change._asdict(), "setting": change.setting}


def _print(changes: Sequence[SettingChange], before: str, after: str) -> None:
    rows = [
        (change.table, change.name, change.setting, shown(change.before), shown(change.after), change.place)
        for change in changes
    ]
    emit_table(("TABLE", "ROW", "SETTING", before, after, "BY"), rows)


def _history_file(args: argparse.Namespace) -> TemplateHistory:
    return TemplateHistory(args.history or Path(os.environ.get("VSRT_STATE_DIR", ".")) / HISTORY)


def _apply(args: argparse.Namespace) -> int:
    history = _history_file(args)
    databases, found = _planned(args)
    if found.obstacles:
        databases.close()
        raise OperationFailed("this cannot be had, and nothing is changed:\n" + "\n".join(found.obstacles))
    _refuse_cuts(args, databases, found.changes)
    if not found.changes:
        databases.close()
        _tell(args, None, (), [])
        return 0
    run = history.begin(args.names, found.changes)
    remarks = cuts(found.changes) + in_band_ends(found.changes) + _made(databases, history, run)
    _tell(args, run, found.changes, remarks)
    return 0


def _made(databases: TemplateDatabases, history: TemplateHistory, run: TemplateRun) -> list[str]:
    """Make the changes of a run, and write down what became of it."""
    try:
        remarks = databases.change(run.changes)
    except OperationFailed:
        if not databases.left_changed:
            history.end(run, "failed")
        raise
    finally:
        databases.close()
    history.end(run, "done")
    return remarks


def _tell(
    args: argparse.Namespace, run: TemplateRun | None, changes: Sequence[SettingChange], remarks: Sequence[str]
) -> None:
    if args.json:
        changed = [_document(change) for change in changes]
        emit_json({"run": None if run is None else run.number, "changes": changed, "remarks": list(remarks)})
        return
    if run is None:
        print("all is as it is desired already: nothing is changed")
        return
    _print(changes, "WAS", "IS")
    for remark in remarks:
        print(remark)
    print(f"run {run.number}: {len(changes)} settings; `vsrt template undo {run.number}` has them as they were")


def _history(args: argparse.Namespace) -> int:
    runs = _history_file(args).runs.values()
    if args.json:
        emit_json(
            [
                {
                    **{name: getattr(run, name) for name in ("number", "time_s", "by", "names", "undoes", "state")},
                    "changes": [_document(change) for change in run.changes],
                }
                for run in runs
            ]
        )
        return 0
    clock = Clock()
    rows = [(run.number, clock(run.time_s), run.by or "-", _what(run), len(run.changes), run.state) for run in runs]
    emit_table(("RUN", "TIME", "BY", "WHAT", "SETTINGS", "STATE"), rows)
    return 0


def _what(run: TemplateRun) -> str:
    return ", ".join(run.names) if run.undoes is None else f"undid run {run.undoes}"


def _undo(args: argparse.Namespace) -> int:
    history = _history_file(args)
    run = history.last_applied() if args.number is None else history.runs.get(args.number)
    if run is None:
        raise InputError(f"RUN: {history.path} has no run{'' if args.number is None else f' {args.number}'} to undo")
    databases = TemplateDatabases(args.db or list(dict.fromkeys(change.server for change in run.changes)))
    back, others, gone = undoing(run.changes, databases.rows)
    if others:
        databases.close()
        raise OperationFailed("settings were changed since, and nothing is undone:\n" + "\n".join(others))
    remarks = [f"{name} is gone" for name in gone]
    if not back:
        databases.close()
        _tell(args, None, (), remarks)
        return 0
    _refuse_cuts(args, databases, back)
    undone = history.begin(run.names, back, run.number)
    remarks += _made(databases, history, undone)
    _tell(args, undone, back, remarks)
    return 0


def _export(args: argparse.Namespace) -> int:
    databases = TemplateDatabases(args.db or [DEFAULT_DATABASE])
    databases.close()
    bridge = databases.bridges().get(args.bridge)
    if bridge is None:
        raise InputError(f"BRIDGE: there is no {args.bridge!r}, but {', '.join(databases.bridges()) or 'none'}")
    settings = {
        name if key is None else f"{name}:{key}": value
        for name in _EXPORTED
        for key, value in _values(bridge.values[name])
    }
    if args.json:
        emit_json({"version": 1, "templates": {args.bridge: {"bridge": settings}}})
        return 0
    import yaml

    document = {"version": 1, "templates": {args.bridge: {"bridge": {k: _yaml(v) for k, v in settings.items()}}}}
    print(yaml.safe_dump(document, sort_keys=False), end="")
    return 0


def _values(value: Any) -> list[tuple[str | None, Any]]:
    return [(key, value[key]) for key in sorted(value)] if isinstance(value, dict) else [(None, value)]


def _yaml(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
