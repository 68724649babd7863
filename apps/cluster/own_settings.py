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

HIGHEST, LED = "VSRT_CLUSTER_EPOCH", "VSRT_CLUSTER_LED_EPOCH"
"""By which a controller that begins anew knows the latest epoch that it knew, and the latest in which it led."""


def own_settings(policy: Policy) -> SidecarSettings:
    """Return what the process beside is told; SystemExit for what cannot be.

    What the run before this one left in the environment is taken out of it, so that no program inherits it.
    """
    try:
        settings = sidecar_settings(policy.cluster, secrets.token_hex(8))
        metrics = metrics_address(policy.monitor)
        access(settings)
    except SettingsInvalid as error:
        raise SystemExit(f"vsrt: {error}") from error
    highest_epoch, led_epoch = (int(os.environ.pop(name, "0")) for name in (HIGHEST, LED))
    known = settings.member._replace(highest_epoch=highest_epoch, led_epoch=led_epoch, metrics=metrics)
    return settings._replace(member=known)


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
