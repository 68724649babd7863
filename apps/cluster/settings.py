"""What the policy and the environment say of this controller as a member of a cluster."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

from apps.cluster.sidecar_settings import SidecarSettings
from apps.environment import environment_path
from apps.monitor_settings import prometheus_settings
from apps.tls_files import SettingsInvalid
from controller.cluster.member_settings import MemberSettings
from controller.config.cluster_settings import Cluster
from controller.config.settings import Monitor
from controller.config.terms import parse_host_port

ANY_ADDRESS = "0.0.0.0"

MEMBER_BYTES = 64
"""Length of a member's name at most."""


def member_name() -> str:
    """Return what this controller is called: VSRT_MEMBER, else the host's name. SettingsInvalid for what is none."""
    name = environment_path("VSRT_MEMBER") or socket.gethostname()
    if not name.isprintable() or "/" in name or len(name.encode()) > MEMBER_BYTES:
        raise SettingsInvalid(
            f"VSRT_MEMBER: {name!r} cannot name a member: up to {MEMBER_BYTES} bytes, without a slash"
        )
    return name


def peer_address() -> tuple[str, int] | None:
    """Return where others hear this controller: VSRT_PEER, ADDRESS:PORT; None where it is unset."""
    text = environment_path("VSRT_PEER")
    if text is None:
        return None
    try:
        host, port = parse_host_port(text)
    except ValueError as error:
        raise SettingsInvalid(f"VSRT_PEER: {text!r} is no ADDRESS:PORT") from error
    with suppress(ValueError):
        if ip_address(host).is_unspecified:
            raise SettingsInvalid(f"VSRT_PEER: others are told {text}: give one of this machine's addresses")
    return host, port


def metrics_address(monitor: Monitor) -> str:
    """Return where others reach the metrics of this process, ``HOST:PORT``; '' where nobody knows.

    Where it listens at all addresses, it is that of VSRT_PEER, else the host's name.
    """
    endpoint = prometheus_settings(monitor)
    if endpoint is None or not endpoint.port:
        return ""
    if endpoint.host != ANY_ADDRESS:
        return f"{endpoint.host}:{endpoint.port}"
    peer = peer_address()
    host = socket.gethostname() if peer is None else peer[0]
    return f"[{host}]:{endpoint.port}" if ":" in host else f"{host}:{endpoint.port}"


def sidecar_settings(cluster: Cluster, incarnation: str) -> SidecarSettings:
    """Return what the policy's section and the environment say; SettingsInvalid where that cannot be."""

    def absolute(path: str) -> str:
        return str(Path(path).absolute()) if path else ""

    address = peer_address()
    peer = "" if address is None else os.environ["VSRT_PEER"]
    times = cluster.lease_s, cluster.silence_s, cluster.stall_s
    member = MemberSettings(cluster.fabric, member_name(), incarnation, peer, *times)
    files = map(absolute, (cluster.ca, cluster.certificate, cluster.key, cluster.password_file))
    return SidecarSettings(member, tuple(cluster.endpoints.split()), *files)
