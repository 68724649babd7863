"""Which messages a switch sends a connection by itself, by the connection's role.

OpenFlow 1.3.5, 7.3.10 (OFPT_SET_ASYNC), and the same in OpenFlow 1.0 by an extension that Open vSwitch has
(NXT_SET_ASYNC_CONFIG).
"""

from __future__ import annotations

from struct import Struct

from controller.rules.pipeline import OPENFLOW_1_0, OPENFLOW_1_3

_OFPT_SET_ASYNC = 28
_OFPT_VENDOR, _NX_VENDOR_ID, _NXT_SET_ASYNC_CONFIG = 4, 0x2320, 19
_MASKS = Struct("!6I")
_HEADER, _NX_HEADER = Struct("!BBHI"), Struct("!BBHIII")

_MASTER_PACKETS, _PUNTED = 0b111, 0b010
"""Reasons of packet-ins: all of them, and that a flow entry says so (OFPR_ACTION)."""

_PORT_CHANGES, _REMOVED, _REMOVED_1_0 = 0b111, 0b1111, 0b111


def encode_async(version: int, xid: int) -> bytes:
    """Have a slave told, beside changes of ports, the packets that flow entries send to controllers.

    A master goes on being told everything.
    """
    removed = _REMOVED_1_0 if version == OPENFLOW_1_0 else _REMOVED
    masks = _MASKS.pack(_MASTER_PACKETS, _PUNTED, _PORT_CHANGES, _PORT_CHANGES, removed, 0)
    if version == OPENFLOW_1_0:
        length = _NX_HEADER.size + len(masks)
        header = _NX_HEADER.pack(OPENFLOW_1_0, _OFPT_VENDOR, length, xid, _NX_VENDOR_ID, _NXT_SET_ASYNC_CONFIG)
        return header + masks
    return _HEADER.pack(OPENFLOW_1_3, _OFPT_SET_ASYNC, _HEADER.size + len(masks), xid) + masks
