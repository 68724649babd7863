"""What an operator may ask of the multicast core: from the fields of a question to events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from controller.config.terms import RESERVED_LABELS, is_address_name, is_label_key, is_label_value, is_pool_name
from controller.maintenance.model import DAY_S, LONGEST_STEP_S, MaintenanceOrder
from controller.multicast.events import (
    AddressReleased,
    AddressTakeAsked,
    AliasAsked,
    CountersResetAsked,
    GroupPinSet,
    GroupRebuildAsked,
    GroupSwapAsked,
    LabelSet,
    MaintenanceHookSet,
    MaintenancePlanAsked,
    MaintenanceSkipAsked,
    MaintenanceStartAsked,
    MaintenanceTurnAsked,
    RouterPortSet,
    StaticMemberSet,
    SwitchDrainSet,
    SwitchForgetAsked,
)
from controller.wire.addresses import is_multicast_ip, parse_name

TEXT_LENGTH = 500
"""Characters of what a command says of itself, or of the upgrade of a switch."""

MAX_DPID, MAX_PORT_NO = (1 << 64) - 1, (1 << 32) - 1

Action = (
    StaticMemberSet
    | RouterPortSet
    | SwitchDrainSet
    | SwitchForgetAsked
    | GroupRebuildAsked
    | AliasAsked
    | GroupSwapAsked
    | GroupPinSet
    | LabelSet
    | AddressTakeAsked
    | AddressReleased
    | CountersResetAsked
    | MaintenancePlanAsked
    | MaintenanceStartAsked
    | MaintenanceTurnAsked
    | MaintenanceSkipAsked
    | MaintenanceHookSet
)


class ActionInvalid(ValueError):  # noqa: N818
    """An action that cannot be read; `field` is at fault, the text says why."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(f"{field}: {text}")
        self.field = field


def _whole(lower: int, upper: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if type(value) is not int or not lower <= value <= upper:
            raise ValueError(f"{value!r} is no whole number from {lower} to {upper}")
        return value

    return read


def _family(value: Any) -> int:
    if type(value) is not int or value not in (4, 6):
        raise ValueError(f"{value!r} is neither 4 nor 6")
    return value


def _switches(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise ValueError("no list of datapath ids")
    return tuple(sorted({_whole(0, MAX_DPID)(each) for each in value}))


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is neither true nor false")
    return value


def _window(value: Any) -> tuple[int, int] | None:
    if value is None:
        return None
    second = _whole(0, DAY_S - 1)
    if not isinstance(value, list) or len(value) != 2 or value[0] == value[1]:
        raise ValueError("a window is two different seconds of the day, or null")
    return second(value[0]), second(value[1])


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= LONGEST_STEP_S:
        raise ValueError(f"{value!r} is no number of seconds from 1 to {LONGEST_STEP_S:g}")
    return float(value)


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > TEXT_LENGTH:
        raise ValueError(f"no text of at most {TEXT_LENGTH} characters")
    return value


def _group(value: Any) -> bytes:
    try:
        address = parse_name(value)
    except (ValueError, TypeError, AttributeError):
        raise ValueError(f"{value!r} is no IP address, nor one in a VLAN such as 239.1.1.1@20") from None
    if not is_multicast_ip(address):
        raise ValueError(f"{value} is no multicast address")
    return address


def _label_key(value: Any) -> str:
    if not isinstance(value, str) or not is_label_key(value):
        reserved = f"; {', '.join(RESERVED_LABELS)} are known of every switch"
        raise ValueError(
            f"{value!r} cannot name a label: a letter, then up to 62 letters, digits, dots, _ and -{reserved}"
        )
    return value


def _label_value(value: Any) -> str:
    if not isinstance(value, str) or not is_label_value(value):
        raise ValueError(f"{value!r} cannot be the value of a label: 1 to 63 letters, digits, dots, _ and -")
    return value


def _pool(value: Any) -> str:
    if not isinstance(value, str) or not is_pool_name(value):
        raise ValueError(f"{value!r} cannot name a pool: a letter, then up to 62 letters, digits, dots, _ and -")
    return value


def _address_name(value: Any) -> str:
    if not isinstance(value, str) or not is_address_name(value):
        raise ValueError(
            f"{value!r} cannot be whose an address is: 1 to 63 letters, digits, dots, _ and -, no sign first"
        )
    return value


_READERS: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {
        "dpid": _whole(0, MAX_DPID),
        "port_no": _whole(1, MAX_PORT_NO),
        "family": _family,
        "key": _label_key,
        "value": _label_value,
        "pool": _pool,
        "name": _address_name,
        "group": _group,
        "switches": _switches,
        "disruptive": _boolean,
        "restarts": _boolean,
        "window": _window,
        "expected_s": _seconds,
        "hook_limit_s": _seconds,
        "runner": _text,
        "fault": _text,
    }
)

_ORDER = ("switches", "disruptive", "window", "expected_s", "hook_limit_s", "restarts")


def _plan(*order: Any) -> MaintenancePlanAsked:
    return MaintenancePlanAsked(MaintenanceOrder(*order))


def _start(*fields: Any) -> MaintenanceStartAsked:
    *order, runner = fields
    return MaintenanceStartAsked(MaintenanceOrder(*order), runner)


def _switch_label(dpid: int, key: str, value: str | None = None) -> LabelSet:
    return LabelSet(dpid, 0, key, value)


_FORMS: Mapping[str, tuple[tuple[str, ...], Callable[..., Action]]] = MappingProxyType(
    {
        "static-member-add": (("dpid", "port_no", "group"), partial(StaticMemberSet, present=True)),
        "static-member-remove": (("dpid", "port_no", "group"), partial(StaticMemberSet, present=False)),
        "router-port-add": (("dpid", "port_no", "family"), partial(RouterPortSet, present=True)),
        "router-port-remove": (("dpid", "port_no", "family"), partial(RouterPortSet, present=False)),
        "switch-drain": (("dpid",), partial(SwitchDrainSet, drained=True)),
        "switch-undrain": (("dpid",), partial(SwitchDrainSet, drained=False)),
        "switch-forget": (("dpid",), SwitchForgetAsked),
        "group-rebuild": (("group",), GroupRebuildAsked),
        "alias-add": (("group",), partial(AliasAsked, present=True)),
        "alias-remove": (("group",), partial(AliasAsked, present=False)),
        "group-swap-in": (("group",), partial(GroupSwapAsked, is_in=True)),
        "group-swap-out": (("group",), partial(GroupSwapAsked, is_in=False)),
        "group-pin": (("group",), partial(GroupPinSet, present=True)),
        "group-unpin": (("group",), partial(GroupPinSet, present=False)),
        "port-label-add": (("dpid", "port_no", "key", "value"), LabelSet),
        "port-label-remove": (("dpid", "port_no", "key"), partial(LabelSet, value=None)),
        "switch-label-add": (("dpid", "key", "value"), _switch_label),
        "switch-label-remove": (("dpid", "key"), _switch_label),
        "address-take": (("pool", "name"), AddressTakeAsked),
        "address-release": (("pool", "name"), AddressReleased),
        "counters-reset": ((), CountersResetAsked),
        "maintenance-plan": (_ORDER, _plan),
        "maintenance-start": ((*_ORDER, "runner"), _start),
        "maintenance-pause": ((), partial(MaintenanceTurnAsked, "pause")),
        "maintenance-resume": (("runner",), partial(MaintenanceTurnAsked, "resume")),
        "maintenance-abort": ((), partial(MaintenanceTurnAsked, "abort")),
        "maintenance-skip": (("dpid",), MaintenanceSkipAsked),
        "maintenance-hook-begin": (("dpid", "runner"), partial(MaintenanceHookSet, fault=None)),
        "maintenance-hook-end": (("dpid", "runner", "fault"), MaintenanceHookSet),
    }
)
"""Per action its fields in the order of the event's, and what makes the event."""

ACTIONS = tuple(_FORMS)
"""The names of the actions."""


def read_action(name: str, asked: Mapping[str, Any]) -> Action:
    """Return the event of an action; ActionInvalid names the field at fault, KeyError stands for no such action."""
    fields, make = _FORMS[name]
    for field in asked:
        if field not in fields:
            raise ActionInvalid(field, f"{name} has no such field")
    values = []
    for field in fields:
        if field not in asked:
            raise ActionInvalid(field, "missing")
        try:
            values.append(_READERS[field](asked[field]))
        except ValueError as error:
            raise ActionInvalid(field, str(error)) from None
    return make(*values)
