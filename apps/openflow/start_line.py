"""One line of the log for each process at its start: what runs, where switches connect, by which files."""

from __future__ import annotations

import logging

from apps.environment import policy_path, state_path
from apps.openflow import framework
from apps.version import version

LOGGER = logging.getLogger("vsrt")

_parts: list[str] = []
_said: list[str] = []


def add(part: str) -> None:
    """Have the line say something that an app knows; before any app of the process starts."""
    _parts.append(part)


def announce() -> None:
    """Log the line, whichever app of the process starts first."""
    if _said:
        return
    policy = policy_path()
    _said.append(
        "; ".join(
            (
                f"vsrt-controller {version()} starts under {framework.NAME}",
                _listening(),
                f"apps: {', '.join(framework.running_apps())}",
                f"policy file: {policy.absolute()}"
                if policy is not None
                else "no policy file (VSRT_CONFIG is not set): every join and sender is refused",
                f"state directory: {state_path().absolute()}",
                *_parts,
            )
        )
    )
    LOGGER.info("%s", _said[0])


def _listening() -> str:
    ports = [
        f"{host or 'any address'}, port {port}{', by TLS' * by_tls}" for host, port, by_tls in framework.listening()
    ]
    return f"switches connect to {' and '.join(ports)}"
