"""A bridge of a private Open vSwitch, in a network of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from apps.emulation.namespace import private_network
from apps.emulation.ovs import PrivateOpenVSwitch
from apps.emulation.processes import run


@contextmanager
def private_bridge(name: str) -> Iterator[Path]:
    """Have bridge `name` meanwhile, for OpenFlow 1.0 and 1.3; gives the path of its management socket.

    Userspace datapaths of one network share a device, `ovs-netdev`, which only one ovs-vswitchd can have.
    """
    settings = ("datapath_type=netdev", "fail_mode=secure", "protocols=OpenFlow10,OpenFlow13")
    with private_network(), PrivateOpenVSwitch("user") as instance:
        run("ovs-vsctl", "--timeout=10", "add-br", name, "--", "set", "bridge", name, *settings)
        path = instance.directory / f"{name}.mgmt"
        assert path.exists(), instance.log()
        yield path
        run("ovs-vsctl", "--timeout=10", "del-br", name)
