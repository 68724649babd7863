"""`vsrt cluster import`: the keys of a fabric from a file that `vsrt cluster export` wrote."""

from __future__ import annotations

import argparse
from pathlib import Path

from apps.cli.cluster_store import add_policy, open_store, put_keys, read_keys
from apps.cli.common import InputError, OperationFailed, emit_json
from apps.cluster.etcd import EtcdEngine
from controller.cluster.archive import ArchiveInvalid, read_archive, restoring, why_not

HELP = "fill a store that was lost with the keys of such a file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the file."""
    add_policy(parser)
    parser.add_argument("file", type=Path, metavar="FILE", help="what `vsrt cluster export` wrote")
    parser.add_argument(
        "--force",
        action="store_true",
        help="also where a controller leads, the fabric has keys, which are removed, or has another name",
    )


def run(args: argparse.Namespace) -> int:
    """Put the keys, unless that would take something away."""
    store = open_store(args)
    try:
        archive = read_archive(args.file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{args.file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{args.file}: it is no archive of a fabric's keys") from None
    except ArchiveInvalid as error:
        raise InputError(f"{args.file}: {error}") from None
    engine, fabric = EtcdEngine(store.access), store.settings.fabric
    _, held = read_keys(engine, fabric)
    why = why_not(archive, fabric, held)
    if why is not None and not args.force:
        raise OperationFailed(f"{args.file} is not taken: {why} (--force takes it all the same)")
    put_keys(engine, restoring(archive, fabric, held))
    if args.json:
        emit_json({"fabric": fabric, "keys": len(archive.keys)})
    else:
        print(f"fabric {fabric} has the {len(archive.keys)} keys of {args.file}")
    return 0
