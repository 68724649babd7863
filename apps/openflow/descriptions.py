"""What a switch says of itself (OFPMP_DESC, OFPST_DESC): asked once per connection, whichever apps want to know."""

from __future__ import annotations

from struct import Struct
from typing import Any

from controller.events import SwitchDescription

LONGEST_BYTES = 256
"""As long a text as OpenFlow has room for (DESC_STR_LEN)."""

_HEADER = Struct("!BBHI")
_STATS = Struct("!HH")
_DESC = 0
_REQUESTS = {1: (16, 12), 4: (18, 16)}
"""By OpenFlow version the type of a statistics request, and its length without a body."""


def ask_description(datapath: Any, xid: int) -> None:
    """Have a switch describe itself, unless an app of this process has asked it on this connection already."""
    if getattr(datapath, "description_asked", False):
        return
    datapath.description_asked = True
    datapath.send(encode_request(datapath.ofproto.OFP_VERSION, xid))


def encode_request(ofp_version: int, xid: int) -> bytes:
    """Return a request for the description of a switch; KeyError for another version than 1.0 and 1.3."""
    kind, length = _REQUESTS[ofp_version]
    return (_HEADER.pack(ofp_version, kind, length, xid) + _STATS.pack(_DESC, 0)).ljust(length, b"\0")


def read_description(message: Any) -> SwitchDescription:
    """Return what a reply says of the switch: texts that end at their first NUL, and control characters spelled."""
    body = message.body
    return SwitchDescription(*map(_text, (body.mfr_desc, body.hw_desc, body.sw_desc, body.serial_num, body.dp_desc)))


def _text(field: bytes) -> str:
    text = field[:LONGEST_BYTES].partition(b"\0")[0].decode("utf-8", "replace").strip()
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)
