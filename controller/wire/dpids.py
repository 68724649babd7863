"""Datapath ids as text: 16 hexadecimal digits, as Open vSwitch prints them; read in any usual spelling."""

from __future__ import annotations

import re

MAX_DPID = (1 << 64) - 1

_HEX = re.compile(r"0[xX]([0-9a-fA-F]{1,16})\Z")
_DIGITS = re.compile(r"[0-9a-fA-F]{16}\Z")
_OCTETS = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){7}\Z")
_DECIMAL = re.compile(r"[0-9]{1,20}\Z")


def format_dpid(dpid: int) -> str:
    """Return a datapath id as 16 hexadecimal digits: ``0000a2f1c3d4e5f6``."""
    return f"{dpid:016x}"


def parse_dpid(text: str) -> int:
    """Return the datapath id that a text stands for.

    Exactly 16 digits are hexadecimal, as ``ovs-vsctl`` prints them, also in eight pairs with colons between; fewer
    with ``0x`` in front are too. Other digits are decimal.

    Raises
    ------
    ValueError
        The text is none of these, or stands for 0 or for more than 64 bits.
    """
    if match := _HEX.match(text):
        dpid = int(match[1], 16)
    elif _DIGITS.match(text) or _OCTETS.match(text):
        dpid = int(text.replace(":", ""), 16)
    elif _DECIMAL.match(text):
        dpid = int(text)
    else:
        dpid = 0
    if not 1 <= dpid <= MAX_DPID:
        raise ValueError(f"{text!r} is no datapath id, such as {format_dpid(0xA2F1C3D4E5F6)}, 0x1a or 26")
    return dpid


def looks_like_dpid(text: str) -> bool:
    """Tell whether a text could be taken for a datapath id, be it a good one or not."""
    return any(form.match(text) for form in (_HEX, _DIGITS, _OCTETS, _DECIMAL))
