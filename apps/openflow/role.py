"""Asks switches for a role of ours beside other controllers (OpenFlow 1.3.5, 6.3.5)."""

from __future__ import annotations

from typing import Any

from controller.events import ControllerRole
from controller.rules.of13_resources import NO_CHANGE, encode_role_request

OPENFLOW_1_3 = 4
_ROLES = {"equal": ControllerRole.EQUAL, "slave": ControllerRole.SLAVE}
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
            datapath.send(encode_role_request(NO_CHANGE, 0, self._tag | _ASK_XID))

    def replied(self, message: Any) -> None:
        """Go on with the switch's answer."""
        if self._role is not None and message.xid == self._tag | _ASK_XID and message.role != self._role:
            generation = 0 if message.generation_id == _UNDEFINED else message.generation_id
            message.datapath.send(encode_role_request(self._role, generation, self._tag | _CHANGE_XID))
