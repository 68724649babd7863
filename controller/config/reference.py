"""The table of settings for the documentation: `python -m controller.config.reference` prints it."""

from __future__ import annotations

from controller.config.declarations import Setting, SettingType
from controller.config.read import bound
from controller.config.settings import all_settings
from controller.wire.addresses import format_ip

HEADER = "| setting | value | default | meaning |\n|---|---|---|---|\n"


def settings_table() -> str:
    """Return every setting of the policy file as a Markdown table."""
    return HEADER + "".join(
        f"| `{name}` | {_value(entry)} | {_default(entry)} | {entry.meaning} |\n" for name, entry in all_settings()
    )


def _value(entry: Setting) -> str:
    if entry.choices:
        return ", ".join(f"`{choice}`" for choice in entry.choices)
    if entry.lower is None or entry.upper is None:
        return str(entry.type)
    unit = f" {entry.unit}" if entry.unit else ""
    return f"{entry.type}, {bound(entry.lower)} to {bound(entry.upper)}{unit}"


def _default(entry: Setting) -> str:
    value = entry.default
    match entry.type:
        case _ if entry.optional:
            return "absent"
        case SettingType.IP | SettingType.IPV4 | SettingType.IPV6_LINK_LOCAL:
            return format_ip(value)
        case SettingType.PORTS | SettingType.SWITCHES | SettingType.LINKS | SettingType.IPV4_IN_VLANS:
            return "none"
        case SettingType.BOOLEAN | SettingType.BOOLEAN_OR_PORTS:
            return str(value).lower()
        case SettingType.THRESHOLDS | SettingType.STATIC_TREES | SettingType.OVSDB_SERVERS | SettingType.WORDS:
            return "none"
        case SettingType.CAPACITIES | SettingType.TENANT_SHARES | SettingType.PEER_WINDOWS:
            return "none"
        case SettingType.CHOICE | SettingType.TEXT:
            return f"`{value}`" if value else "empty"
    return bound(value)


if __name__ == "__main__":
    print(settings_table(), end="")
