"""Settings whose change can cut the connection of a switch to its controller, or what comes over it."""

from __future__ import annotations

from collections.abc import Iterable

from controller.switch_templates.plan import SettingChange, shown

SPOKEN = ("OpenFlow10", "OpenFlow13")
"""The versions of OpenFlow that this controller speaks, as a bridge has them in `protocols`."""

_CUTS = {
    ("Bridge", "datapath_type"): "the bridge is made anew, and is away meanwhile",
    ("Bridge", "other_config:datapath-id"): "the switch connects anew, as another one",
    ("Controller", "connection_mode"): "the switch reaches its controller another way, or not at all",
    ("Controller", "local_ip"): "the switch reaches its controller from another address, or not at all",
    ("Controller", "local_netmask"): "the switch reaches its controller another way, or not at all",
    ("Controller", "local_gateway"): "the switch reaches its controller another way, or not at all",
}


def cut_reason(change: SettingChange) -> str:
    """Return what a change does to the connection to the controller, '' where it leaves it alone."""
    setting = change.table, change.setting
    if setting == ("Bridge", "protocols"):
        # None named stands for all.
        is_spoken = not change.after or any(version in SPOKEN for version in change.after)
        return "" if is_spoken else "none of the versions that this controller speaks is left (1.0, 1.3)"
    if setting == ("Controller", "enable_async_messages") and change.after == (False,):
        return "the controller hears of no packets and ports any more"
    return _CUTS.get(setting, "")


def cuts(changes: Iterable[SettingChange]) -> list[str]:
    """Return, for each change that can cut the connection of a switch, a sentence that says so."""
    return [_said(change, why) for change in changes if (why := cut_reason(change))]


def in_band_ends(changes: Iterable[SettingChange]) -> list[str]:
    """Return, for each bridge that is to connect out of band only, what that means where it does not yet."""
    why = "a switch that reaches its controller through its own ports needs flow entries for that now"
    key = ("Bridge", "other_config:disable-in-band", "true")
    return [_said(change, why) for change in changes if (change.table, change.setting, change.after) == key]


def _said(change: SettingChange, why: str) -> str:
    was, is_ = shown(change.before), shown(change.after)
    return f"{change.table} {change.name}, {change.setting}: {was} becomes {is_}, and {why}"
