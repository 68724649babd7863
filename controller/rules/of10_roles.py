"""Roles as OpenFlow 1.0 messages: an extension by Nicira, which Open vSwitch has (NXT_ROLE_REQUEST, NXT_ROLE_REPLY).

There are no generations: of several controllers that ask to be master the last one is.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from controller.events import ControllerRole

VERSION = 1
_OFPT_VENDOR = 4
_NX_VENDOR_ID = 0x2320
_NXT_ROLE_REQUEST, _NXT_ROLE_REPLY = 10, 11
_NX_ROLES = {ControllerRole.EQUAL: 0, ControllerRole.MASTER: 1, ControllerRole.SLAVE: 2}
_ROLES = {number: role for role, number in _NX_ROLES.items()}

_ROLE = Struct("!BBHIIII")


class NiciraRole(NamedTuple):
    """The role that a connection has, as the answer to the request with this transaction id."""

    xid: int
    role: ControllerRole


def encode_role_request(role: int, _generation_id: int, xid: int) -> bytes:
    """Ask a switch for a role (`ControllerRole`)."""
    number = _NX_ROLES[ControllerRole(role)]
    return _ROLE.pack(VERSION, _OFPT_VENDOR, _ROLE.size, xid, _NX_VENDOR_ID, _NXT_ROLE_REQUEST, number)


def encode_role_reply(reply: NiciraRole) -> bytes:
    """Say which role a connection has, as a switch does."""
    number = _NX_ROLES[reply.role]
    return _ROLE.pack(VERSION, _OFPT_VENDOR, _ROLE.size, reply.xid, _NX_VENDOR_ID, _NXT_ROLE_REPLY, number)


def decode_role_reply(message: bytes) -> NiciraRole | None:
    """Read a role reply; None where it is none, is cut short, or says a role that there is not."""
    if len(message) < _ROLE.size:
        return None
    version, kind, _, xid, vendor, subtype, number = _ROLE.unpack_from(message)
    if (version, kind, vendor, subtype) != (VERSION, _OFPT_VENDOR, _NX_VENDOR_ID, _NXT_ROLE_REPLY):
        return None
    role = _ROLES.get(number)
    return None if role is None else NiciraRole(xid, role)
