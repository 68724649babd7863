"""`vsrt policy compare`: who would be refused, and who admitted, had another policy been in force."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from apps.cli.common import InputError, emit_json, emit_table

HELP = "tell who of an audit log another policy would refuse, or admit, instead"

LISTED = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the policy and the logs."""
    parser.add_argument("file", type=Path, metavar="FILE", help="the policy that is to be put in force (YAML)")
    parser.add_argument(
        "--audit",
        type=Path,
        nargs="+",
        required=True,
        metavar="LOG",
        help="audit logs (JSON lines, also packed by gzip)",
    )
    parser.add_argument(
        "--limit", type=int, default=LISTED, metavar="N", help=f"rows of the table (default {LISTED})"
    )


def run(args: argparse.Namespace) -> int:
    """Print what would be decided otherwise; status 0 whatever that is."""
    from apps.cli.audit_file import read_audit
    from apps.fabric_file import FabricFile
    from controller.config import PolicyInvalid, load_policy
    from controller.policy_discovery.comparison import compare, comparison_document

    if args.limit < 0:
        raise InputError(f"--limit {args.limit}: expected 0 or more")
    try:
        policy = load_policy(args.file.read_bytes(), str(args.file), FabricFile(args.file).read)
    except PolicyInvalid as fault:
        raise InputError(str(fault)) from None
    except OSError as error:
        raise InputError(f"{args.file}: {error.strerror or error}") from None
    observed, notes = read_audit(args.audit)
    for note in notes:
        print(f"vsrt: {note}", file=sys.stderr)
    found = compare(observed, policy)
    document = comparison_document(found)
    if args.json:
        emit_json(document)
        return 0
    refused, admitted = len(found.refused), len(found.admitted)
    print(f"{found.alike} pairs of host and group decided alike, {refused} would be refused, {admitted} admitted")
    rows = [
        (verdict, one["role"], one["group"], one["source"] or "-", host["ip"] or host["mac"], one["rule"], then)
        for verdict in ("refused", "admitted")
        for one in document[verdict]
        for host, then in [(one["host"], one["staged_rule"])]
    ]
    if rows[: args.limit]:
        emit_table(("WOULD BE", "ROLE", "GROUP", "SOURCE", "HOST", "RULE NOW", "RULE THEN"), rows[: args.limit])
    if len(rows) > args.limit:
        print(f"and {len(rows) - args.limit} more (--limit, --json)")
    return 0
