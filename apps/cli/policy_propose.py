"""`vsrt policy propose`: a policy file from the decisions of an audit log."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from apps.cli.common import InputError, OperationFailed, emit_json
from apps.cli.text_files import file_faults
from apps.cli.whole_files import write_new

HELP = "propose a policy file from an audit log: tenants, their groups, their senders"

BY = ("address", "mac", "port")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the logs, how hosts are written, and where the file goes."""
    parser.add_argument(
        "--audit",
        type=Path,
        nargs="+",
        required=True,
        metavar="FILE",
        help="audit logs (JSON lines, also packed by gzip)",
    )
    parser.add_argument(
        "--by",
        choices=BY,
        default="address",
        help="how the hosts of a tenant are written (default: address, by prefixes)",
    )
    parser.add_argument(
        "--policy", type=Path, metavar="FILE", help="policy in force, whose other sections the proposal takes over"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="the policy file, which must not be there (default: print it)",
    )


def run(args: argparse.Namespace) -> int:
    """Print or write the policy file, with what speaks for each rule."""
    from apps.cli.audit_file import read_audit
    from controller.config import PolicyInvalid, load_policy
    from controller.policy_discovery.proposal import policy_text, proposal_document, propose

    observed, notes = read_audit(args.audit)
    for note in notes:
        print(f"vsrt: {note}", file=sys.stderr)
    proposal = propose(observed, args.by)
    text = policy_text(proposal, observed, [] if args.policy is None else _kept(args.policy))
    try:
        load_policy(text.encode(), "proposal")
    except PolicyInvalid as fault:
        raise OperationFailed(f"what was seen cannot be one policy: {fault}") from None
    if args.output is not None:
        write_new(args.output, text)
    if args.json:
        emit_json(proposal_document(proposal, observed, text))
    elif args.output is None:
        sys.stdout.write(text)
    else:
        print(
            f"{args.output}: {len(proposal.tenants)} tenants, {len(proposal.rules)} rules; read it before it is used"
        )
    return 0


def _kept(path: Path) -> list[str]:
    from controller.policy_discovery.proposal import other_sections

    with file_faults(path):
        text = path.read_text(encoding="utf-8")
    try:
        return other_sections(text)
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
