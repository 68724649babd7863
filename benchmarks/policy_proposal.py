"""Policies proposed from generated audit logs, beside the list of what was seen; time of a long log.

python benchmarks/policy_proposal.py              # fresh fabrics at each run
python benchmarks/policy_proposal.py --lines 1000000
"""

from __future__ import annotations

import argparse
import resource
import secrets
import tempfile
import time
from pathlib import Path

import numpy as np
from generated_joins import SeenFabric, seen_fabric

from apps.cli.audit_file import read_audit
from controller.admission import Admission, Host, Role
from controller.config import load_policy
from controller.policy_discovery.proposal import PolicyProposal, policy_text, propose
from controller.wire.addresses import parse_ip


def proposed(fabric: SeenFabric, seed: int) -> tuple[PolicyProposal, str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "audit.jsonl"
        path.write_text("".join(line + "\n" for line in fabric.lines(np.random.default_rng(seed))))
        observed, _ = read_audit([path])
    proposal = propose(observed)
    return proposal, policy_text(proposal, observed)


def shares(fabric: SeenFabric, text: str) -> dict[str, float]:
    """Which part is admitted of pairs that were seen, may be and may not be, and of senders seen and not seen."""
    admission = Admission(load_policy(text.encode(), "proposed"))
    hosts = [Host(b"\2\0" + row.to_bytes(4), parse_ip(ip), 9, 9) for row, ip in enumerate(fabric.addresses)]
    groups = [parse_ip(group) for group in fabric.groups]

    def admitted(role: Role) -> np.ndarray:
        return np.array([[admission.decide(host, group, role).admit for group in groups] for host in hosts])

    received, sent = admitted(Role.RECEIVER), admitted(Role.SENDER)
    own = (fabric.of_host >= 0)[:, None]
    unseen_senders = np.ones(sent.shape, np.bool_)
    for row, column in fabric.senders:
        unseen_senders[row, column] = False
    return {
        "seen": received[fabric.allowed & fabric.seen & own].mean(),
        "unseen": received[fabric.allowed & ~fabric.seen & own].mean(),
        "foreign": received[~fabric.allowed & own].mean(),
        "senders": sent[~unseen_senders].mean(),
        "unseen senders": sent[unseen_senders].mean(),
    }


def long_log(lines: int, seed: int) -> None:
    fabric = seen_fabric(seed)
    rng = np.random.default_rng(seed)
    some = list(fabric.lines(rng))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "audit.jsonl"
        with path.open("w") as file:
            for number in range(lines):
                file.write(some[number % len(some)] + "\n")
        start_s = time.perf_counter()
        observed, _ = read_audit([path])
        read_s = time.perf_counter() - start_s
        propose(observed)
        whole_s = time.perf_counter() - start_s
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{lines:,} lines read in {read_s:.1f} s, proposed after {whole_s:.1f} s, {peak:.2f} GB at most")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=40, help="fabrics")
    parser.add_argument("--seed", type=int, default=None, help="for the same fabrics again")
    parser.add_argument("--lines", type=int, help="time a log of so many lines")
    args = parser.parse_args()
    seed = secrets.randbits(24) if args.seed is None else args.seed
    print(f"seed {seed}")
    if args.lines:
        long_log(args.lines, seed)
        return
    found: dict[str, list[float]] = {}
    for draw in range(seed, seed + args.draws):
        fabric = seen_fabric(draw)
        proposal, text = proposed(fabric, draw)
        shared = shares(fabric, text) | {"rules / true": len(proposal.rules) / fabric.rules}
        for name, figure in shared.items():
            found.setdefault(name, []).append(figure)
    print("| what | mean | least | most |\n|---|---|---|---|")
    for name, figures in found.items():
        print(f"| {name} | {np.mean(figures):.4f} | {min(figures):.4f} | {max(figures):.4f} |")


if __name__ == "__main__":
    main()
