"""Outgoing interfaces of a group at a switch: ports, and ports in another VLAN than the group's own.

A member in the group's own VLAN is at a port. One that gets the group by registration from another VLAN is at a port
in its own VLAN, which stands above the number of the port (32 bits), so that the others stay what they are.
"""

from __future__ import annotations

_PORT_BITS = 32
_PORT_MASK = (1 << _PORT_BITS) - 1

HIGHEST_PORT = _PORT_MASK
"""OIFs up to this are ports in the group's own VLAN."""


def oif_in(port_no: int, vlan_id: int) -> int:
    """Return a port in a VLAN that is not the group's own, 0 for the fabric's own domain."""
    return port_no | vlan_id + 1 << _PORT_BITS


def port_of_oif(oif: int) -> int:
    """Return the number of the port."""
    return oif & _PORT_MASK


def vlan_of_oif(oif: int, own: int) -> int:
    """Return the VLAN in which the member is, which is `own`, the group's, where the OIF says nothing else."""
    return own if oif <= HIGHEST_PORT else (oif >> _PORT_BITS) - 1
