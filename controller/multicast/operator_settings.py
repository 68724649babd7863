"""What operators set, as the log and the core tell each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from controller.config.terms import is_address_name, is_label_key, is_label_value, is_pool_name
from controller.log import LogEntry, LogEntryKind
from controller.multicast.address_pools import TakenAddress
from controller.wire.addresses import format_ip, is_multicast_ip, parse_ip, parse_name

SETTINGS_BOUND = 16384
"""Static members of operators, and likewise router ports, drained switches, labels and addresses, that are kept;
others are refused."""


class OperatorLabel(NamedTuple):
    """A label that an operator gave a port, or a switch (`port_no` 0)."""

    dpid: int
    port_no: int
    key: str
    value: str


class OperatorSettings(NamedTuple):
    """What a log says that operators have set."""

    static_members: tuple[tuple[int, int, bytes], ...] = ()
    router_ports: tuple[tuple[int, int, int], ...] = ()
    drained: tuple[int, ...] = ()
    pinned: tuple[bytes, ...] = ()
    campaign: Mapping[str, Any] | None = None
    campaign_switches: tuple[Mapping[str, Any], ...] = ()
    labels: tuple[OperatorLabel, ...] = ()
    addresses: tuple[TakenAddress, ...] = ()


class OperatorSetting(NamedTuple):
    """What an operator set, `subject` saying what kind: a static member (`what` is the group), a router port (the
    family), a drained switch, or a group that stays in the tables (`what`, at no switch)."""

    subject: str
    dpid: int
    port_no: int = 0
    what: bytes | int = 0


def setting_entry(setting: OperatorSetting, is_set: bool) -> LogEntry:
    """Return what the log is told of a setting."""
    subject, dpid, port_no, what = setting
    if subject == "pin" and isinstance(what, bytes):
        name = format_ip(what)
        return LogEntry.of_record(LogEntryKind.DECISION, f"pin/{name}", {"group": name} if is_set else None)
    value: dict[str, Any] = {"dpid": dpid}
    key = f"{subject}/{dpid}"
    if isinstance(what, bytes):
        value |= {"port_no": port_no, "group": format_ip(what)}
        key += f"/{port_no}/{value['group']}"
    elif subject == "router-port":
        value |= {"port_no": port_no, "family": what}
        key += f"/{port_no}/{what}"
    return LogEntry.of_record(LogEntryKind.DECISION, key, value if is_set else None)


def read_static_member(dpid: Any, port_no: Any, text: Any) -> tuple[int, int, bytes]:
    """Return what the log says of a static member; TypeError or ValueError where it cannot be read."""
    return int(dpid), int(port_no), read_pin(text)


def read_pin(text: Any) -> bytes:
    """Return what the log says of a group that stays in; TypeError or ValueError where it cannot be read."""
    group = parse_name(text)
    if not is_multicast_ip(group):
        raise ValueError("no group")
    return group


def read_router_port(dpid: Any, port_no: Any, family: Any) -> tuple[int, int, int]:
    """Return what the log says of a router port; TypeError or ValueError where it cannot be read."""
    if family not in (4, 6):
        raise ValueError("no family")
    return int(dpid), int(port_no), int(family)


def read_label(value: Mapping[str, Any]) -> OperatorLabel:
    """Return what the log says of a label; KeyError, TypeError or ValueError where it cannot be read."""
    label = OperatorLabel(int(value["dpid"]), int(value["port_no"]), str(value["key"]), str(value["value"]))
    if not is_label_key(label.key) or not is_label_value(label.value):
        raise ValueError("no label")
    return label


def read_taken_address(value: Mapping[str, Any]) -> TakenAddress:
    """Return what the log says of an address of a pool; KeyError, TypeError or ValueError where it cannot be read."""
    taken = TakenAddress(str(value["pool"]), str(value["name"]), parse_ip(value["address"]))
    if not is_pool_name(taken.pool) or not is_address_name(taken.name) or not is_multicast_ip(taken.address):
        raise ValueError("no address of a pool")
    return taken
