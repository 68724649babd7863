"""Asks switches for a role of ours beside other controllers (OpenFlow 1.3.5, 6.3.5)."""

from __future__ import annotations

from struct import Struct
from typing import Any

OPENFLOW_1_3 = 4
_ROLE_REQUEST = 24
_MESSAGE = Struct("!BBHII4xQ")
_NO_CHANGE = 0
_ROLES = {"equal": 1, "slave": 3}
_UNDEFINED = (1 << 64) - 1
_ASK_XID, _CHANGE_XID = 0xFFFFFE, 0xFFFFFF


class RoleRequests:
    """Asks each OpenFlow 1.3 switch that connects for `role`, ``equal`` or ``slave``; nothing where it is another.

    The switch is first asked for the generation that the last master gave, without which it takes no slave.
    """

    def __init__(self, role: str, xid_tag: int) -> None:
        self._role = _ROLES.get(role)
        self._tag = xid_tag << 24

    def connected(self, datapath: Any) -> None:
        """Begin with a switch."""
        if self._role is not None and datapath.ofproto.OFP_VERSION >= OPENFLOW_1_3:
            self._send(datapath, _ASK_XID, _NO_CHANGE, 0)

    def replied(self, message: Any) -> None:
        """Go on with the switch's answer."""
        if self._role is not None and message.xid == self._tag | _ASK_XID and message.role != self._role:
            generation = 0 if message.generation_id == _UNDEFINED else message.generation_id
            self._send(message.datapath, _CHANGE_XID, self._role, generation)

    def _send(self, datapath: Any, xid: int, role: int, generation: int) -> None:
        version = datapath.ofproto.OFP_VERSION
        datapath.send(_MESSAGE.pack(version, _ROLE_REQUEST, _MESSAGE.size, self._tag | xid, role, generation))
