"""`vsrt changes record`: a log of what is configured otherwise than before, for `vsrt policy discover`."""

from __future__ import annotations

import argparse
from pathlib import Path

from apps.cli.change_recorder import ChangeRecorder, kept_by_one, known_changes
from apps.cli.common import InputError, emit_json
from apps.cli.database_follower import DatabaseFollower
from apps.cli.following import followed
from apps.cli.reach import add_source, open_source
from apps.end_signals import raised_once
from controller.config.terms import is_ovsdb_target
from controller.policy_discovery.configuration import SECTIONS, Configuration

HELP = "write a line for each setting of switches, ports and the policy that changes, until interrupted"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the file, and where the controller is."""
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="JSON lines, gone on with where it is there"
    )
    parser.add_argument(
        "--from-nothing",
        action="store_true",
        help="take what is set already, and is not in the file, as changes too (default: as what is usual)",
    )
    parser.add_argument(
        "--db",
        action="append",
        default=[],
        metavar="TARGET",
        help="OVSDB server the settings of which are recorded too (default: monitor.ovsdb of the policy in force)",
    )
    add_source(parser)
    parser.epilog = (
        "It ends by Ctrl-C or SIGTERM, with status 0. What changed while it did not run is recorded when it runs "
        "again, with that time, of settings that are in the file. A controller that is away is tried again each "
        "second, a database within 8 s, and a file that cannot be written with the next change and at the end."
    )


def run(args: argparse.Namespace) -> int:
    """Record until interrupted."""
    path: Path = args.output
    for target in args.db:
        if not is_ovsdb_target(target):
            raise InputError(f"--db: {target!r} is neither unix:PATH nor tcp:HOST:PORT")
    with kept_by_one(path), raised_once(KeyboardInterrupt):
        configuration = Configuration(known_changes(path), args.from_nothing)
        databases = DatabaseFollower(lambda told: recorder.take(told), args.db, args.url is not None)
        recorder = ChangeRecorder(path, configuration, (databases,))
        try:
            databases.start()
            for snapshot in followed(open_source(args), SECTIONS):
                recorder.follow(snapshot)
        except KeyboardInterrupt:
            databases.end()
            recorder.write()
        document = {"file": str(path), "changes": recorder.count, "unwritten": len(configuration.changes())}
        if args.json:
            emit_json(document)
        else:
            unwritten = f"; {document['unwritten']} could not be written" if document["unwritten"] else ""
            print(f"{recorder.count} changes recorded in {path}{unwritten}", flush=True)
    return 1 if document["unwritten"] else 0
