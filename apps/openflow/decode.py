"""Framework messages into the frozen events that the cores take."""

from __future__ import annotations

from typing import Any

from controller.events import Port, PortChanged, SwitchConnected
from controller.wire.addresses import parse_mac

_PORT_DOWN = 1 << 0  # OFPPC_PORT_DOWN
_LINK_DOWN = 1 << 0  # OFPPS_LINK_DOWN
_SPEED_BITS_1_0 = ((1 << 6, 10e9), (0b11 << 4, 1e9), (0b11 << 2, 100e6), (0b11, 10e6))  # ofp_port_features


def port(description: Any) -> Port:
    """Read a port description of OpenFlow 1.0 or 1.3."""
    if hasattr(description, "curr_speed"):
        speed_bps = description.curr_speed * 1000.0
    else:
        speed_bps = next((speed for bits, speed in _SPEED_BITS_1_0 if description.curr & bits), 0.0)
    name = description.name
    return Port(
        port_no=description.port_no,
        name=(name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)).rstrip("\0"),
        mac=parse_mac(description.hw_addr),
        up=not description.config & _PORT_DOWN and not description.state & _LINK_DOWN,
        speed_bps=speed_bps,
    )


def switch_connected(datapath: Any) -> SwitchConnected:
    """Read the ports of a datapath that finished its handshake."""
    # Port status messages change the framework's table on another thread meanwhile.
    ports = tuple(port(description) for description in list(datapath.ports.values()))
    return SwitchConnected(datapath.id, datapath.ofproto.OFP_VERSION, ports, datapath.connection.is_encrypted)


def port_changed(message: Any) -> PortChanged:
    """Read a port status message."""
    deleted = message.reason == message.datapath.ofproto.OFPPR_DELETE
    return PortChanged(message.datapath.id, port(message.desc), deleted)
