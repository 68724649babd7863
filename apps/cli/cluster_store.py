"""The store that a policy file names, as the commands of `vsrt cluster` reach it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from apps.cli.common import InputError, OperationFailed
from apps.cluster.etcd import Access, EtcdEngine
from apps.cluster.settings import sidecar_settings
from apps.cluster.sidecar_settings import access
from apps.cluster.store_reading import StoreSilent, read_below
from apps.environment import environment_path
from apps.fabric_file import FabricFile
from apps.tls_files import SettingsInvalid
from controller.cluster.engine import KeyValue, Reply, Request, Silent, Transaction
from controller.cluster.keys import Keys
from controller.config import PolicyInvalid, load_policy
from controller.config.cluster_settings import NO_ENGINE, Cluster
from controller.config.faults import describe

TRIES = 5
"""How often a request without an answer is sent."""


class ClusterStore(NamedTuple):
    """The settings of a cluster, and how its store is reached."""

    settings: Cluster
    access: Access


def add_policy(parser: argparse.ArgumentParser) -> None:
    """Declare where the settings are."""
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="policy file whose section cluster names the store (VSRT_CONFIG)"
    )


def open_store(args: argparse.Namespace) -> ClusterStore:
    """Return the store that the policy file names; InputError where there is none."""
    path = args.config or (Path(given) if (given := environment_path("VSRT_CONFIG")) else None)
    if path is None:
        raise InputError("--config: name the policy file whose section cluster says where the store is")
    try:
        policy = load_policy(path.read_bytes(), str(path), FabricFile(path).read)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except PolicyInvalid as fault:
        raise InputError(describe(fault.errors[0], str(path))) from None
    if policy.cluster.engine == NO_ENGINE:
        raise InputError(f"{path}: cluster.engine: the policy names no store")
    try:
        return ClusterStore(policy.cluster, access(sidecar_settings(policy.cluster, "")))
    except SettingsInvalid as error:
        raise InputError(str(error)) from None


def read_keys(engine: EtcdEngine, fabric: str) -> tuple[int, tuple[KeyValue, ...]]:
    """Return all keys of a fabric as of one revision; OperationFailed where the store does not answer."""
    try:
        return read_below(lambda request: _answer(engine, request), Keys(fabric).root)
    except StoreSilent as silent:
        raise OperationFailed(f"the store gave no answer: {silent}") from None


def put_keys(engine: EtcdEngine, transactions: Iterator[Transaction]) -> None:
    """Have transactions done; OperationFailed where the store does not answer."""
    for transaction in transactions:
        why = getattr(_answer(engine, transaction), "why", "")
        if why:
            raise OperationFailed(f"the store gave no answer, and only some of the keys may be there: {why}")


def _answer(engine: EtcdEngine, request: Request) -> Reply:
    """Return the store's answer, which is asked `TRIES` times where there is none."""
    replies = (engine.ask(request) for _ in range(TRIES))
    reply = next(replies)
    while type(reply) is Silent and (again := next(replies, None)) is not None:
        reply = again
    return reply
