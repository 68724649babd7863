"""Faucet's configuration (`faucet.yaml`) as a policy: switches, ports, VLANs, bonds, links, access lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import yaml

from controller.config.faults import quoted
from controller.config.terms import MAX_PORT_NO, SwitchLink, SwitchPort
from controller.config.vlans import MAX_VLAN_ID
from controller.migration.draft import PolicyDraft, VlanDraft
from controller.migration.faucet_acls import AccessList, read_access_list
from controller.migration.faucet_keys import PORT, SWITCH, SWITCH_IF_FALSE, TOP, UNKNOWN, VLAN, KeyMeaning
from controller.migration.faucet_rules import write_rules
from controller.migration.report import BadConfiguration, Fault, ImportReport, InputFile, Outcome
from controller.migration.yaml_file import YamlEntry, YamlFile, is_integer, shown

MAX_FILES = 256
MAX_PORTS = 65_536
MAX_LEGS = 16

ReadInclude = Callable[[str, str], InputFile | None]
"""Returns the file that another one (its name) includes by a path; None where it is not there."""

_RANGE = re.compile(r"(\d{1,10})-(\d{1,10})\Z")
_FLOODS = (
    "Faucet floods packets of groups to every port of a VLAN; here a port gets those that its hosts join (IGMP, MLD)."
)
_UNDECLARED = (
    "Faucet lets nothing in at ports that its file does not name. Here such a port is in no VLAN, its hosts reach "
    "those at other such ports, and a rule refuses them groups; shut these ports at the switches."
)


class _Vlan(NamedTuple):
    vlan_id: int
    lists: list[tuple[YamlFile, yaml.Node, str]]


class _Port(NamedTuple):
    place: SwitchPort
    name: str
    file: YamlFile
    entries: dict[str, YamlEntry]
    head: YamlEntry


def read_faucet(sources: Sequence[InputFile], read_include: ReadInclude) -> tuple[PolicyDraft, ImportReport]:
    """Return the policy that a Faucet configuration comes to, and what became of its lines.

    Parameters
    ----------
    sources
        The files, in order; of what two of them define by one name the later counts, as where one includes the other.
    read_include
        Reads a file that another one includes.

    Raises
    ------
    BadConfiguration
        Faucet would refuse the files, or they are larger than what is read here.
    """
    return _Faucet(read_include).read(sources)


class _Faucet:
    """Goes through files, VLANs, access lists and switches in this order, each of which names what was before it."""

    def __init__(self, read_include: ReadInclude) -> None:
        self.draft = PolicyDraft()
        self.report = ImportReport(("#", "---", "..."))
        self.faults: list[Fault] = []
        self._read_include = read_include
        self._files: dict[str, YamlFile] = {}
        self._sections: dict[str, dict[str, tuple[YamlFile, YamlEntry]]] = {"vlans": {}, "acls": {}, "dps": {}}
        self._vlans: dict[str, _Vlan] = {}
        self._lists: dict[str, AccessList] = {}
        self._ports: list[_Port] = []
        self._by_name: dict[tuple[int, str], SwitchPort] = {}
        self._dpids: dict[str, tuple[int, YamlEntry, YamlFile]] = {}
        self._on_port: dict[tuple[str, ...], list[SwitchPort]] = {}
        self._limits: list[int] = []
        self._timeouts: list[tuple[float, YamlEntry]] = []

    def read(self, sources: Sequence[InputFile]) -> tuple[PolicyDraft, ImportReport]:
        for source in sources:
            self._file(source)
        for name, (file, entry) in self._sections["vlans"].items():
            self._vlan(name, file, entry)
        for name, (file, entry) in self._sections["acls"].items():
            self._lists[name] = read_access_list(file, entry, self.report)
        for name, (file, entry) in self._sections["dps"].items():
            self._switch(name, file, entry)
        if not self._sections["dps"] and not self.faults and sources:
            self.faults.append(
                Fault(sources[0].name, 0, "no `dps`: not a configuration of Faucet, or one without switches")
            )
        for port in self._ports:
            dpid, number = port.place
            self._by_name |= {(dpid, word): port.place for word in (port.name, port.head.key, str(number))}
        for port in self._ports:
            self._port(port)
        self._aggregations()
        by_vlan = {vlan.vlan_id: [self._lists[name] for _, _, name in vlan.lists] for vlan in self._vlans.values()}
        write_rules(
            self.draft, self._lists, self._on_port, {vlan_id: lists for vlan_id, lists in by_vlan.items() if lists}
        )
        if self.draft.vlans:
            self.report.note(_UNDECLARED)
        self._common_settings()
        if self.faults:
            raise BadConfiguration(sorted(self.faults))
        for file in self._files.values():
            for place in file.merges:
                self.report.taken(place, "what is written elsewhere in the file")
        self.report.note(_FLOODS)
        return self.draft, self.report

    def _file(self, source: InputFile) -> None:
        """Read a file's sections, then those that it includes, whose definitions count before its own."""
        if source.name in self._files:
            self.faults.append(
                Fault(source.name, 0, "the file is read twice: it includes itself, or two files include it")
            )
            return
        if len(self._files) == MAX_FILES:
            raise BadConfiguration([Fault(source.name, 0, f"more than {MAX_FILES} files")])
        self.report.add(source)
        file = self._files[source.name] = YamlFile(source, self.faults)
        if file.root is None:
            return
        included: list[tuple[YamlEntry, bool]] = []
        for key, entry in file.entries(file.root, "a mapping with vlans, dps, acls").items():
            head = entry.place._replace(last=entry.place.line)
            if key in self._sections:
                self.report.taken(head, f"the section `{key}`")
                for name, below in file.entries(entry.node, "a mapping of names").items():
                    known = self._sections[key].get(name)
                    if known is not None:
                        self.report.idle(
                            known[1].place, f"defined again on {file.name}:{below.place.line}, which counts"
                        )
                    self._sections[key][name] = file, below
            elif key in ("include", "include-optional"):
                self.report.taken(head, "files that are read too")
                included.append((entry, key == "include"))
            else:
                self._say(file, entry, TOP.get(key, UNKNOWN))
        for entry, is_needed in included:
            for item in file.items(entry.node, "a list of files"):
                self._include(file, item, is_needed)

    def _include(self, file: YamlFile, item: yaml.Node, is_needed: bool) -> None:
        path = file.text(item, "the name of a file")
        if path is None:
            return
        source = self._read_include(file.name, path)
        if source is not None:
            self.report.taken(file.place(item), "read too")
            self._file(source)
        elif is_needed:
            file.fault(item, f"{quoted(path)} is not there")
        else:
            self.report.idle(file.place(item), "not there, and optional")

    def _vlan(self, name: str, file: YamlFile, entry: YamlEntry) -> None:
        below = file.entries(entry.node, "the settings of a VLAN")
        known = below["vid"].node if "vid" in below else entry.key_node
        vlan_id = file.integer(known, 1, MAX_VLAN_ID, "VLAN (give it a `vid`)")
        called = file.text(below["name"].node, "a name") if "name" in below else name
        if vlan_id is None or called is None:
            return
        if vlan_id in {vlan.vlan_id for vlan in self._vlans.values()}:
            file.fault(known, f"VLAN {vlan_id} is defined by another name already")
            return
        vlan = _Vlan(vlan_id, [])
        for word in (name, called, str(vlan_id)):
            self._vlans[word] = vlan
        head = entry.place._replace(last=entry.place.line)
        if called.isdecimal():
            self.draft.name_vlan(vlan_id, f"vlan-{vlan_id}", str(head))
            self.report.taken(head, f"VLAN {vlan_id}")
        elif (given := self.draft.name_vlan(vlan_id, called, str(head))) == called:
            self.report.taken(head, f"VLAN {vlan_id}, called {given}")
        else:
            self.report.changed(head, f"VLAN {vlan_id}, called {given}: names have letters, digits, `.`, `_` and `-`")
        for key, one in below.items():
            if key in ("vid", "name"):
                self.report.taken(one.place, f"VLAN {vlan_id}")
            elif key == "description":
                self.report.changed(one.place, "left out: a VLAN has a name and no description")
            elif key in ("acl_in", "acls_in"):
                vlan.lists.extend((file, node, text) for node, text in self._named_lists(file, one))
            else:
                self._say(file, one, VLAN.get(key, UNKNOWN))

    def _named_lists(self, file: YamlFile, entry: YamlEntry) -> Iterator[tuple[yaml.Node, str]]:
        """Yield the names of access lists that a port or a VLAN has, one or a list of them."""
        self.report.taken(entry.place, "rules about groups for it: see its lists")
        nodes = file.items(entry.node, "") if isinstance(entry.node, yaml.SequenceNode) else iter([entry.node])
        for node in nodes:
            name = file.text(node, "the name of an access list")
            if name is not None and name not in self._sections["acls"]:
                file.fault(node, f"there is no access list {quoted(name)}")
            elif name is not None:
                yield node, name

    def _switch(self, name: str, file: YamlFile, entry: YamlEntry) -> None:
        below = file.entries(entry.node, "the settings of a switch")
        known = below["dp_id"].node if "dp_id" in below else entry.key_node
        dpid = file.integer(known, 1, (1 << 64) - 1, "datapath id (give it a `dp_id`)")
        called = file.text(below["name"].node, "a name") if "name" in below else name
        if dpid is None or called is None:
            return
        if dpid in self.draft.switches:
            file.fault(known, f"datapath id {dpid:#x} is that of {self.draft.switches[dpid].name} already")
            return
        switch, is_called = self.draft.switch(dpid, called)
        head = entry.place._replace(last=entry.place.line)
        if is_called:
            self.report.taken(head, f"switch {switch.name}")
        else:
            self.report.changed(
                head, f"switch {switch.name}: {quoted(called)} cannot name a switch, or is another's name"
            )
        for word in (name, called, str(dpid)):
            self._dpids[word] = dpid, entry, file
        lists: YamlEntry | None = None
        for key, one in below.items():
            if key in ("dp_id", "name"):
                self.report.taken(one.place, f"switch {switch.name}")
            elif key in ("interfaces", "interface_ranges"):
                self.report.taken(one.place._replace(last=one.place.line), "its ports")
            elif key == "description":
                self.report.changed(one.place, "left out: a switch has a name and labels")
            elif key == "stack":
                self.report.changed(one.place, "no switch is the root of a stack: every group has a tree of its own")
            elif key == "dp_acls":
                lists = one
            elif key == "timeout":
                number = file.integer(one.node, 1, 1 << 31, "time in seconds")
                self._timeouts += [] if number is None else [(number, one)]
            elif key in SWITCH_IF_FALSE and file.boolean(one.node) is False:
                self._say(file, one, SWITCH_IF_FALSE[key])
            else:
                self._say(file, one, SWITCH.get(key, UNKNOWN))
        self._interfaces(file, dpid, below, lists)

    def _interfaces(self, file: YamlFile, dpid: int, below: dict[str, YamlEntry], lists: YamlEntry | None) -> None:
        """Read the ports of a switch, with what ranges of ports say of them."""
        ports: dict[int, tuple[str, dict[str, YamlEntry], YamlEntry]] = {}
        names: dict[str, int] = {}
        if "interfaces" in below:
            for key, entry in file.entries(below["interfaces"].node, "a mapping of ports").items():
                settings = file.entries(entry.node, "the settings of a port")
                known = settings["number"].node if "number" in settings else entry.key_node
                number = file.integer(known, 1, MAX_PORT_NO, "port number (give it a `number`)")
                called = file.text(settings["name"].node, "a name") if "name" in settings else key
                if number is None or called is None:
                    continue
                if number in ports:
                    file.fault(known, f"port {number} is defined already, on line {ports[number][2].place.line}")
                    continue
                ports[number] = called, settings, entry
                names |= {key: number, called: number}
        if "interface_ranges" in below:
            for key, entry in file.entries(below["interface_ranges"].node, "a mapping of ranges").items():
                settings = file.entries(entry.node, "the settings of ports")
                self.report.taken(entry.place._replace(last=entry.place.line), "ports that have these settings")
                for number in self._range(file, entry.key_node, key, names):
                    known_port = ports.get(number)
                    if known_port is None:
                        ports[number] = str(number), dict(settings), entry
                    else:
                        ports[number] = known_port[0], {**settings, **known_port[1]}, known_port[2]
        for number, (called, settings, head) in ports.items():
            if len(self._ports) == MAX_PORTS:
                raise BadConfiguration([Fault(file.name, head.place.line, f"more than {MAX_PORTS} ports")])
            if lists is not None and not {"acl_in", "acls_in"} & set(settings):
                settings = {**settings, "acls_in": lists}
            self._ports.append(_Port(SwitchPort(dpid, number), called, file, settings, head))

    def _range(self, file: YamlFile, node: yaml.Node, text: str, names: dict[str, int]) -> Iterator[int]:
        for part in filter(None, (word.strip() for word in text.split(","))):
            match = _RANGE.match(part)
            first, last = (int(match[1]), int(match[2])) if match else (names.get(part), names.get(part))
            if not match and part.isdecimal():
                first = last = int(part)
            if first is None or last is None or not 1 <= first <= last <= MAX_PORT_NO or last - first >= MAX_PORTS:
                file.fault(node, f"{quoted(part)} is neither a port, nor a range such as 1-6")
                continue
            yield from range(first, last + 1)

    def _port(self, port: _Port) -> None:
        """Read what a port's settings say, and report their lines."""
        file, settings, place = port.file, port.entries, port.place
        origin = f"{port.head.place}"
        label = self._label(port)
        if not port.name.isdecimal():
            given = self.draft.name_port(place, port.name)
            if given != port.name:
                self.report.changed(
                    port.head.place, f"{label}, called {given}: {quoted(port.name)} cannot name a port"
                )
        self.report.taken(port.head.place._replace(last=port.head.place.line), label)
        untagged = self._vlan_of(file, settings["native_vlan"].node) if "native_vlan" in settings else None
        tagged: list[int] = []
        if "tagged_vlans" in settings:
            tagged = [
                vlan_id
                for node in file.items(settings["tagged_vlans"].node, "a list of VLANs")
                if (vlan_id := self._vlan_of(file, node)) is not None
            ]
        if untagged in tagged:
            file.fault(settings["tagged_vlans"].node, f"VLAN {untagged} is the port's native VLAN too")
        if "stack" in settings:
            self._stack(port, settings["stack"])
        elif untagged is not None or tagged:
            comment = file.text(settings["description"].node, "a text") if "description" in settings else ""
            about = ", ".join(filter(None, (origin, comment)))
            self.draft.vlans[place] = VlanDraft(untagged, tuple(tagged)), about
        elif not {"output_only", "mirror", "coprocessor"} & set(settings) and _is_enabled(settings):
            what = "the port has no VLAN, and Faucet refuses that"
            file.fault(port.head.key_node, f"{what}: give it native_vlan, tagged_vlans or stack")
        for key, entry in settings.items():
            self._port_key(port, key, entry)

    def _port_key(self, port: _Port, key: str, entry: YamlEntry) -> None:
        """Report one setting of a port."""
        label = self._label(port)
        if key in ("number", "name"):
            self.report.taken(entry.place, label)
        elif key in ("native_vlan", "tagged_vlans"):
            self.report.taken(entry.place, "VLANs of the port" if key == "tagged_vlans" else "VLAN of the port")
        elif key == "description":
            self.report.taken(entry.place, "a comment beside the port")
        elif key in ("acl_in", "acls_in"):
            names = tuple(name for _, name in self._named_lists(port.file, entry))
            if names:
                self._on_port.setdefault(names, []).append(port.place)
        elif key == "max_hosts":
            number = port.file.integer(entry.node, 1, 1 << 31, "number of hosts")
            if number is not None:
                self._limits.append(number)
                self.report.changed(
                    entry.place, "`limits.hosts_per_port`, which holds for every port: the largest of them"
                )
        elif key == "enabled":
            if port.file.boolean(entry.node) is False:
                todo = f"shut port {port.place.port_no} at the switch"
                self.report.impossible(entry.place, "the controller takes no port down", todo)
            else:
                self.report.taken(entry.place, "every port is in use")
        elif key == "hairpin":
            wanted = port.file.boolean(entry.node)
            self._say(port.file, entry, PORT["hairpin_unicast"] if wanted else PORT["opstatus_reconf"])
        elif key not in ("stack", "lacp"):
            self._say(port.file, entry, PORT.get(key, UNKNOWN))

    def _stack(self, port: _Port, entry: YamlEntry) -> None:
        """Take a stacking port as one end of a link that is expected."""
        below = port.file.entries(entry.node, "dp and port")
        end = below.get("dp") or below.get("switch")
        if end is None or "port" not in below:
            port.file.fault(entry.node, "a stacking port names `dp` and `port` at the other end")
            return
        other = self._dpids.get(str(getattr(end.node, "value", "")))
        if other is None:
            port.file.fault(end.node, f"there is no switch {shown(end.node)}")
            return
        wanted = str(getattr(below["port"].node, "value", ""))
        place = self._by_name.get((other[0], wanted))
        if place is None:
            port.file.fault(below["port"].node, f"switch {shown(end.node)} has no port {shown(below['port'].node)}")
            return
        link = SwitchLink(*sorted((port.place, place)))
        self.draft.links.setdefault(link, str(entry.place))
        self.report.taken(entry.place, "a link between switches: expected, and found by LLDP; it carries every VLAN")

    def _aggregations(self) -> None:
        """Make the ports of a switch that have one number `lacp` a group each."""
        groups: dict[tuple[int, int], list[tuple[_Port, YamlEntry]]] = {}
        for port in self._ports:
            if "lacp" in port.entries:
                entry = port.entries["lacp"]
                number = port.file.integer(entry.node, 0, 65535, "LACP number")
                if number == 0:
                    self.report.taken(entry.place, "no LACP at the port")
                elif number is not None:
                    groups.setdefault((port.place.dpid, number), []).append((port, entry))
        for (dpid, number), legs in groups.items():
            vlans = {self.draft.vlans[leg.place][0] for leg, _ in legs if leg.place in self.draft.vlans}
            fits = 2 <= len(legs) <= MAX_LEGS and len(vlans) == 1
            if fits:
                name = f"{self.draft.switches[dpid].name}-lag{number}"
                name = name if name[0].isalpha() else f"lag-{name}"
                self.draft.aggregations[name] = "lacp", [leg.place for leg, _ in legs], str(legs[0][1].place)
            for _, entry in legs:
                if fits:
                    self.report.taken(entry.place, f"a leg of the link aggregation group {name}")
                else:
                    why = (
                        f"a group has 2 to {MAX_LEGS} ports, all in the same VLANs; of this one there are {len(legs)}"
                    )
                    self.report.impossible(entry.place, why, "write `link_aggregations` by hand, with all its legs")

    def _vlan_of(self, file: YamlFile, node: yaml.Node) -> int | None:
        """Return the VLAN that a port names, by name or number; a number needs no definition."""
        text = file.text(node, "a VLAN")
        if text is None:
            return None
        if text in self._vlans:
            return self._vlans[text].vlan_id
        if not is_integer(node):
            file.fault(node, f"there is no VLAN {quoted(text)}")
            return None
        vlan_id = file.integer(node, 1, MAX_VLAN_ID, "VLAN")
        return self._vlans[str(vlan_id)].vlan_id if str(vlan_id) in self._vlans else vlan_id

    def _common_settings(self) -> None:
        """Write settings that are per port or per switch there, and one for all here."""
        if self._limits:
            most = min(65536, max(*self._limits, 255))
            self.draft.settings["limits.hosts_per_port"] = most, "max_hosts"
        if self._timeouts:
            longest = max(number for number, _ in self._timeouts)
            value = min(86400.0, max(10.0, longest))
            self.draft.settings["unicast.host_timeout_s"] = value, str(self._timeouts[0][1].place)
            for number, entry in self._timeouts:
                if number == value:
                    self.report.taken(entry.place, "`unicast.host_timeout_s`")
                else:
                    self.report.changed(entry.place, f"`unicast.host_timeout_s` is one for all switches, {value:g} s")

    def _label(self, port: _Port) -> str:
        return f"port {port.place.port_no} of {self.draft.switches[port.place.dpid].name}"

    def _say(self, file: YamlFile, entry: YamlEntry, meaning: KeyMeaning) -> None:
        """Report a key, and all that is below it."""
        if meaning.outcome is Outcome.IMPOSSIBLE:
            self.report.impossible(entry.place, meaning.what, meaning.todo)
        else:
            self.report.taken(entry.place, meaning.what)


def _is_enabled(settings: dict[str, YamlEntry]) -> bool:
    entry = settings.get("enabled")
    return entry is None or str(getattr(entry.node, "value", "")).lower() not in ("false", "no", "off", "0")
