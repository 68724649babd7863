"""Controller processes to measure: ours under each framework, and Ryu's own IGMP snooping beside it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from apps.emulation.controller import ControllerProcess, Framework
from apps.emulation.free_ports import free_port

OPEN_POLICY = """version: 1
rules: [{name: all, groups: [224.0.0.0/4, "ff00::/8"], role: any, hosts: [any], action: allow}]
default: deny
limits: {groups_per_port: 65536, hosts_per_port: 65536, reports_per_second_per_port: 1000000,
         unknown_packets_per_second_per_port: 1000000, senders_per_port: 65536, groups: 1048576}
"""

IGMPLIB = "ryu.app.simple_switch_igmp_13"
CONTROLLERS = ("vsrt", "vsrt-os-ken", "igmplib")


@contextmanager
def controller(
    name: str,
    policy: str = OPEN_POLICY,
    apps: tuple[str, ...] = ("multicast",),
    env: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[ControllerProcess]:
    """Run one of `CONTROLLERS`, which listens on the `port` of what is yielded."""
    if name not in CONTROLLERS:
        raise ValueError(f"{name!r} is none of {', '.join(CONTROLLERS)}")
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(policy)
        file.flush()
        framework: Framework = "os-ken" if name == "vsrt-os-ken" else "ryu"
        chosen = (IGMPLIB,) if name == "igmplib" else apps
        with ControllerProcess(
            free_port(), framework=framework, policy=Path(file.name), apps=chosen, env=env
        ) as process:
            yield process
