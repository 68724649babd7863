"""What a controller that is one of several begins with: its settings, and where others hear it."""

from __future__ import annotations

import os
import secrets
import socket

from apps.cluster.settings import metrics_address, peer_address, sidecar_settings
from apps.cluster.sidecar_settings import SidecarSettings, access
from apps.system import system_socket
from apps.tls_files import SettingsInvalid
from controller.config.policy import Policy


def own_settings(policy: Policy, highest_epoch: int) -> SidecarSettings:
    """Return what the process beside is told; SystemExit for what cannot be.

    `highest_epoch` is the latest epoch that is known from elsewhere.
    """
    try:
        settings = sidecar_settings(policy.cluster, secrets.token_hex(8))
        metrics = metrics_address(policy.monitor)
        access(settings)
    except SettingsInvalid as error:
        raise SystemExit(f"vsrt: {error}") from error
    return settings._replace(member=settings.member._replace(highest_epoch=highest_epoch, metrics=metrics))


def listening_socket() -> socket.socket | None:
    """Return the socket at VSRT_PEER, None where that is unset. SystemExit where it cannot be had."""
    address = peer_address()
    if address is None:
        return None
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    try:
        listening: socket.socket = system_socket.create_server(address, family=family)
    except OSError as error:
        raise SystemExit(f"vsrt: VSRT_PEER: {os.environ['VSRT_PEER']}: {error.strerror or error}") from error
    return listening
