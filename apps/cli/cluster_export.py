"""`vsrt cluster export`: all keys of a fabric to a file."""

from __future__ import annotations

import argparse
from pathlib import Path

from apps.cli.cluster_store import add_policy, open_store, read_keys
from apps.cli.common import emit_json
from apps.cli.whole_files import write_whole_text
from apps.cluster.etcd import EtcdEngine
from controller.cluster.archive import archive_of

HELP = "write all keys of the fabric to a file, from which a lost store can be filled again"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the file."""
    add_policy(parser)
    parser.add_argument("file", type=Path, metavar="FILE", help="where to; it has secrets, and is its owner's alone")


def run(args: argparse.Namespace) -> int:
    """Write the file, whole or not at all."""
    store = open_store(args)
    revision, held = read_keys(EtcdEngine(store.access), store.settings.fabric)
    archive = archive_of(store.settings.fabric, revision, held)
    write_whole_text(args.file, archive.text(), is_secret=True)
    if args.json:
        told = {"fabric": archive.fabric, "revision": revision, "keys": len(archive.keys)}
        emit_json({**told, "digest": archive.digest()})
    else:
        print(f"{len(archive.keys)} keys of fabric {archive.fabric} as of revision {revision} are in {args.file}")
    return 0
