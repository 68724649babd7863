"""How a setting of the policy file is declared: name, type, default, bounds, unit and meaning in one place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, fields
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar, cast

T = TypeVar("T")


class SettingType(StrEnum):
    """The types that a setting may have; the value is the word for it in messages and in the reference."""

    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "true or false"
    CHOICE = "one of"
    TEXT = "text"
    IP = "IP address"
    IPV4 = "IPv4 address"
    IPV6_LINK_LOCAL = "IPv6 link-local address"
    IPV4_IN_VLANS = "list of IPv4 address@VLAN"
    PORTS = "list of {dpid, port}"
    BOOLEAN_OR_PORTS = "true, false or list of {dpid, port}"
    THRESHOLDS = "list of thresholds"
    SWITCHES = "list of datapath ids"
    STATIC_TREES = "mapping of groups to numbers of aliases"
    OVSDB_SERVERS = "list of OVSDB servers"
    CAPACITIES = "mapping of switches to numbers of entries"
    TENANT_SHARES = "mapping of tenants to {shares, reservation, limit}"
    PEER_WINDOWS = "mapping of peer groups to settings of windows"
    WORDS = "list of words"
    LINKS = "list of [{dpid, port}, {dpid, port}]"


class Setting(NamedTuple):
    """How one setting is read. Bounds are inclusive; `optional` ones are None where the file has none."""

    type: SettingType
    default: Any
    lower: float | None
    upper: float | None
    unit: str
    meaning: str
    choices: tuple[str, ...] = ()
    optional: bool = False


class Section(NamedTuple):
    """A mapping of settings within another."""

    type: type[Any]


def _declare(setting: Setting) -> Any:
    return field(default=setting.default, metadata={"setting": setting})


def integer(default: int, lower: int, upper: int, unit: str, meaning: str) -> int:
    """Declare a whole number."""
    return cast(int, _declare(Setting(SettingType.INTEGER, default, lower, upper, unit, meaning)))


def number(default: float, lower: float, upper: float, unit: str, meaning: str) -> float:
    """Declare a finite number."""
    return cast(float, _declare(Setting(SettingType.NUMBER, default, lower, upper, unit, meaning)))


def optional_integer(lower: int, upper: int, unit: str, meaning: str) -> int | None:
    """Declare a whole number that another setting stands in for where it is absent."""
    return cast(
        "int | None", _declare(Setting(SettingType.INTEGER, None, lower, upper, unit, meaning, optional=True))
    )


def optional_number(lower: float, upper: float, unit: str, meaning: str) -> float | None:
    """Declare a finite number that another setting stands in for where it is absent."""
    return cast(
        "float | None", _declare(Setting(SettingType.NUMBER, None, lower, upper, unit, meaning, optional=True))
    )


def other(type_: SettingType, default: T, meaning: str, choices: tuple[str, ...] = ()) -> T:
    """Declare a setting without bounds."""
    return _declare(Setting(type_, default, None, None, "", meaning, choices))  # type: ignore[no-any-return]


def section(type_: Callable[[], T]) -> T:
    """Declare a mapping of settings within this one."""
    return field(default_factory=type_, metadata={"setting": Section(cast("type[Any]", type_))})


def declared(type_: type[Any]) -> dict[str, Setting | Section]:
    """Return the settings of a section by name, in the order of their declaration."""
    return {entry.name: entry.metadata["setting"] for entry in fields(type_)}
