"""A policy that is being put together, and its text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from controller.config.terms import Prefix, SwitchLink, SwitchPort, is_port_name, is_switch_name
from controller.config.vlans import is_vlan_name

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*\Z")
_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
_MAX_COMMENT = 80


class NamedPorts(NamedTuple):
    """A switch: its datapath id, its name, and the names of its ports."""

    dpid: int
    name: str
    ports: dict[int, str]


class VlanDraft(NamedTuple):
    """The VLANs of a port: `untagged` for frames without a tag (0: the fabric's own domain, None: none), `tagged`.

    `tagged` None stands for every VLAN that the policy names.
    """

    untagged: int | None
    tagged: tuple[int, ...] | None = ()


class DraftRule(NamedTuple):
    """A rule of the policy; `hosts` None stands for any, `groups` may be empty for a router."""

    name: str
    role: str
    groups: tuple[Prefix, ...]
    hosts: tuple[str, ...] | None
    allow: bool
    origin: str
    sources: tuple[Prefix, ...] = ()
    vlan: str = ""


@dataclass(slots=True)
class PolicyDraft:
    """A policy that is being put together; `origin` is always the place, ``FILE:LINE``, that asked for something."""

    switches: dict[int, NamedPorts] = field(default_factory=dict)
    vlan_names: dict[int, tuple[str, str]] = field(default_factory=dict)
    vlan_default: VlanDraft | None = None
    vlans: dict[SwitchPort, tuple[VlanDraft, str]] = field(default_factory=dict)
    aggregations: dict[str, tuple[str, list[SwitchPort], str]] = field(default_factory=dict)
    tenants: dict[str, list[SwitchPort]] = field(default_factory=dict)
    rules: list[DraftRule] = field(default_factory=list)
    static_members: dict[tuple[str, SwitchPort], str] = field(default_factory=dict)
    links: dict[SwitchLink, str] = field(default_factory=dict)
    router_ports: dict[SwitchPort, str] = field(default_factory=dict)
    fast_leave: dict[SwitchPort, str] = field(default_factory=dict)
    settings: dict[str, tuple[object, str]] = field(default_factory=dict)
    _port_names: dict[int, set[str]] = field(default_factory=dict)
    _rule_names: set[str] = field(default_factory=lambda: {"default"})

    def switch(self, dpid: int, wanted: str) -> tuple[NamedPorts, bool]:
        """Return the switch of a datapath id, known from now on, and whether it could be called as wanted."""
        known = self.switches.get(dpid)
        if known is None:
            taken = {switch.name for switch in self.switches.values()}
            name = free_name(wanted, taken, is_switch_name, f"switch-{dpid:x}", 64)
            known = self.switches[dpid] = NamedPorts(dpid, name, {})
        return known, known.name == wanted

    def name_port(self, place: SwitchPort, wanted: str) -> str:
        """Give a port of a known switch a name as near as possible to the one wanted, and return it."""
        taken = self._port_names.setdefault(place.dpid, set())
        name = free_name(wanted, taken, is_port_name, f"port-{place.port_no}", 64)
        taken.add(name)
        self.switches[place.dpid].ports[place.port_no] = name
        return name

    def name_vlan(self, vlan_id: int, wanted: str, origin: str) -> str:
        """Give a VLAN a name as near as possible to the one wanted, and return it."""
        taken = {name for name, _ in self.vlan_names.values()}
        name = free_name(wanted, taken, is_vlan_name, f"vlan-{vlan_id}", 64)
        self.vlan_names[vlan_id] = name, origin
        return name

    def rule_name(self, wanted: str) -> str:
        """Return a name that no rule has yet, as near as possible to the one wanted."""
        name = free_name(wanted, self._rule_names, lambda _: True, "rule", 64)
        self._rule_names.add(name)
        return name

    def port_text(self, place: SwitchPort) -> str:
        """Return a port as the policy file writes it."""
        switch = self.switches.get(place.dpid)
        return f"{{dpid: {scalar(switch.name) if switch else hex(place.dpid)}, port: {place.port_no}}}"


def free_name(wanted: str, taken: set[str], fits: Callable[[str], bool], otherwise: str, longest: int) -> str:
    """Return the wanted name where it fits and is free, else one made of its letters and digits, with a number."""
    base = re.sub(r"[^A-Za-z0-9._-]+", "-", wanted).strip("-.") if not fits(wanted) else wanted
    if not base or not fits(base[:longest]):
        base = otherwise if not base or not fits(f"x-{base}"[:longest]) else f"x-{base}"
    name, number = base[:longest].rstrip(), 2
    while name in taken:
        suffix = f"-{number}"
        name, number = base[: longest - len(suffix)] + suffix, number + 1
    return name


def scalar(value: object) -> str:
    """Return a value as it stands in a YAML file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"{value:g}" if isinstance(value, float) else str(value)
    text = str(value)
    return text if _PLAIN.match(text) and text.lower() not in _WORDS else json.dumps(text)


def text_of(draft: PolicyDraft, heading: Iterable[str]) -> str:
    """Return a draft as the text of a policy file, each entry with the place that asked for it."""
    lines = [f"# {_comment(line)}" for line in heading]
    lines += ["version: 1", "default: allow"]
    lines += _switches(draft)
    lines += _vlans(draft)
    lines += _section("link_aggregations:", _aggregations(draft))
    lines += _section("tenants:", _tenants(draft))
    lines += _section("rules:", map(_rule, draft.rules))
    lines += _section("static_members:", _static_members(draft))
    lines += _section("topology:", _links(draft))
    lines += _settings(draft)
    return "\n".join(lines) + "\n"


def _comment(text: str) -> str:
    shown = "".join(sign if sign.isprintable() else " " for sign in text)
    return shown if len(shown) <= _MAX_COMMENT else f"{shown[: _MAX_COMMENT - 1]}…"


def _entry(text: str, origin: str) -> str:
    return f"{text}  # {_comment(origin)}" if origin else text


def _section(title: str, entries: Iterable[str]) -> list[str]:
    found = [f"  {entry}" for entry in entries]
    return ["", title, *found] if found else []


def _switches(draft: PolicyDraft) -> list[str]:
    def entry(switch: NamedPorts) -> str:
        names = ", ".join(f"{port}: {scalar(name)}" for port, name in sorted(switch.ports.items()))
        ports = f", ports: {{{names}}}" if names else ""
        return f'{scalar(switch.name)}: {{dpid: "{switch.dpid:016x}"{ports}}}'

    return _section("switches:", (entry(switch) for _, switch in sorted(draft.switches.items())))


def _vlans(draft: PolicyDraft) -> list[str]:
    entries: list[str] = []
    if draft.vlan_names:
        entries.append("names:")
        entries += [
            _entry(f"  {vlan_id}: {scalar(name)}", origin)
            for vlan_id, (name, origin) in sorted(draft.vlan_names.items())
        ]
    if draft.vlan_default is not None:
        entries.append(f"default: {{{_membership(draft.vlan_default)}}}")
    if draft.vlans:
        entries.append("ports:")
        entries += [
            _entry(f"  - {{ports: [{draft.port_text(place)}], {_membership(vlans)}}}", origin)
            for place, (vlans, origin) in sorted(draft.vlans.items())
        ]
    return _section("vlans:", entries)


def _membership(vlans: VlanDraft) -> str:
    untagged = "untagged" if vlans.untagged == 0 else vlans.untagged
    if vlans.tagged == ():
        return f"access: {untagged}"
    trunk = "all" if vlans.tagged is None else f"[{', '.join(ranges(vlans.tagged))}]"
    return f"trunk: {trunk}" + ("" if untagged is None else f", native: {untagged}")


def ranges(vlan_ids: Iterable[int]) -> Iterator[str]:
    """Yield VLANs as ids and ranges, in order."""
    first = last = None
    for vlan_id in [*sorted(set(vlan_ids)), None]:
        if last is not None and vlan_id == last + 1:
            last = vlan_id
            continue
        if first is not None:
            yield str(first) if first == last else f"{first}-{last}"
        first = last = vlan_id


def _aggregations(draft: PolicyDraft) -> Iterator[str]:
    for name, (mode, places, origin) in draft.aggregations.items():
        ports = ", ".join(map(draft.port_text, places))
        yield _entry(f"{scalar(name)}: {{mode: {mode}, ports: [{ports}]}}", origin)


def _tenants(draft: PolicyDraft) -> Iterator[str]:
    for name, places in draft.tenants.items():
        yield f"{scalar(name)}: [{', '.join(map(draft.port_text, places))}]"


def _rule(rule: DraftRule) -> str:
    hosts = "any" if rule.hosts is None else f"[{', '.join(rule.hosts)}]"
    parts = [f"name: {scalar(rule.name)}"]
    if rule.groups:
        parts.append(f"groups: [{', '.join(map(address, rule.groups))}]")
    parts += [f"role: {rule.role}", f"hosts: {hosts}"]
    if rule.sources:
        parts.append(f"sources: [{', '.join(map(address, rule.sources))}]")
    if rule.vlan:
        parts.append(f"vlan: {rule.vlan}")
    parts.append(f"action: {'allow' if rule.allow else 'deny'}")
    return _entry(f"- {{{', '.join(parts)}}}", rule.origin)


def address(prefix: Prefix) -> str:
    """Return an address or prefix as it stands in a YAML file."""
    return f'"{prefix}"' if len(prefix.network) == 16 else str(prefix)


def _static_members(draft: PolicyDraft) -> Iterator[str]:
    for (group, place), origin in draft.static_members.items():
        yield _entry(f'- {{group: "{group}", ports: [{draft.port_text(place)}]}}', origin)


def _links(draft: PolicyDraft) -> list[str]:
    if not draft.links:
        return []
    return [
        f"switches: [{', '.join(hex(dpid) for dpid in sorted(draft.switches))}]",
        "links:",
        *(
            _entry(f"  - [{draft.port_text(link.a)}, {draft.port_text(link.b)}]", origin)
            for link, origin in sorted(draft.links.items())
        ),
    ]


def _settings(draft: PolicyDraft) -> list[str]:
    """Return the settings, sections within sections, and the lists of ports among them."""
    values: dict[str, tuple[str, str]] = {
        path: (scalar(value), origin) for path, (value, origin) in draft.settings.items()
    }
    for path, places in (
        ("multicast.router_ports.static", draft.router_ports),
        ("multicast.fast_leave", draft.fast_leave),
    ):
        if places:
            origins = ", ".join(dict.fromkeys(places.values()))
            values[path] = f"[{', '.join(map(draft.port_text, places))}]", origins
    lines: list[str] = []
    open_sections: list[str] = []
    for path in sorted(values):
        *sections, name = path.split(".")
        shared = 0
        while shared < min(len(sections), len(open_sections)) and sections[shared] == open_sections[shared]:
            shared += 1
        for depth in range(shared, len(sections)):
            lines += [*([""] if depth == 0 else []), f"{'  ' * depth}{sections[depth]}:"]
        open_sections = sections
        text, origin = values[path]
        lines.append(_entry(f"{'  ' * len(sections)}{name}: {text}", origin))
    return lines
