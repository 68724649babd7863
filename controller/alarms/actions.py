"""What an operator may ask about alarms: from the fields of a question to events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from controller.alarms.events import AcknowledgeAsked, ForgetLinkAsked, ForgetSwitchAsked
from controller.alarms.known import read_cable
from controller.multicast.actions import ActionInvalid
from controller.wire.dpids import MAX_DPID

ACKNOWLEDGE, FORGET_SWITCH, FORGET_LINK = "alarm-acknowledge", "switch-forget", "link-forget"

FIELDS = {ACKNOWLEDGE: "key", FORGET_SWITCH: "dpid", FORGET_LINK: "link"}
"""The only field of each action."""

KEY_LENGTH = 200

Action: TypeAlias = AcknowledgeAsked | ForgetSwitchAsked | ForgetLinkAsked


def read_action(name: str, asked: Mapping[str, Any], by: str | None) -> Action:
    """Return the event of an action; ActionInvalid names the field at fault, KeyError stands for no such action."""
    field = FIELDS[name]
    for other in asked:
        if other != field:
            raise ActionInvalid(other, f"{name} has no such field")
    if field not in asked:
        raise ActionInvalid(field, "missing")
    value = asked[field]
    if name == FORGET_SWITCH:
        if type(value) is not int or not 0 <= value <= MAX_DPID:
            raise ActionInvalid(field, f"{value!r} is no whole number from 0 to {MAX_DPID}")
        return ForgetSwitchAsked(value)
    if not isinstance(value, str) or len(value) > KEY_LENGTH:
        raise ActionInvalid(field, f"{value!r} is no text of at most {KEY_LENGTH} characters")
    if name == ACKNOWLEDGE:
        return AcknowledgeAsked(value, by)
    try:
        return ForgetLinkAsked(read_cable(value))
    except ValueError:
        raise ActionInvalid(field, f"{value!r} is no link, such as 1:3-5:1") from None
