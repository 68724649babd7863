"""A fat tree of sixteen hosts under a controller that knows all of them, for tests of what ports carry."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from apps.emulation.controller import ControllerProcess, Framework
from apps.emulation.network import CONTROLLER_PORT, EmulatedFabric
from topology.generators import make

HOSTS = 16


@contextmanager
def measured_fat_tree(
    framework: Framework, directory: Path, policy: str
) -> Iterator[tuple[EmulatedFabric, ControllerProcess]]:
    """Run multicast, unicast, the monitor and the allocator by a policy, which is put into `directory`."""
    path = directory / "policy.yaml"
    path.write_text(policy)
    apps = ("multicast", "unicast", "monitor", "allocator")
    controller = ControllerProcess(CONTROLLER_PORT, framework=framework, policy=path, apps=apps)
    with EmulatedFabric(make("fattree", {"k": 4}), controller=controller, patch_links=True) as fabric:
        controller.wait_discovered(fabric)
        fabric.wait_addresses()
        fabric.announce()
        controller.wait_until("status", lambda answer: answer["hosts"] >= HOSTS)
        yield fabric, controller
