"""``/etc/network/interfaces`` (ifupdown with bridge-utils, ifupdown2): bridges, their ports, VLANs and snooping."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from controller.config.faults import quoted
from controller.config.terms import parse_group_prefix
from controller.config.vlans import MAX_VLAN_ID
from controller.migration.bridge_model import BridgeModel, StaticGroup
from controller.migration.querier_values import AskedValue
from controller.migration.report import BadConfiguration, Fault, ImportReport, InputFile, Place
from controller.wire.addresses import is_ssm_group, parse_ip

MAX_LINES = 200_000
MAX_PORTS = 65_536
_RANGE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*?)(\d+)-(\d+)\Z")
_STAYS = "a setting of this machine, which stays there"
_STANZAS = ("auto", "allow-hotplug", "allow-auto", "iface", "mapping", "source", "source-directory", "vlan", "rename")

_TIMERS = {
    "bridge-mcqi": "query_interval_s",
    "bridge-mcqri": "response_interval_s",
    "bridge-mclmi": "last_member_interval_s",
    "bridge-mclmc": "last_member_count",
    "bridge-mcsqc": "startup_count",
    "bridge-mcsqi": "startup_interval_s",
    "bridge-igmp-version": "igmp_version",
    "bridge-mld-version": "mld_version",
}
_NO_STP = "what is flooded follows a spanning tree of the fabric's links, and groups have trees of their own"
_BRIDGE_IDLE = {
    "bridge-stp": _NO_STP,
    "bridge-fd": _NO_STP,
    "bridge-hello": _NO_STP,
    "bridge-maxage": _NO_STP,
    "bridge-bridgeprio": _NO_STP,
    "bridge-pathcost": _NO_STP,
    "bridge-portprio": _NO_STP,
    "bridge-pathcosts": _NO_STP,
    "bridge-portprios": _NO_STP,
    "bridge-maxwait": "how the bridge comes up",
    "bridge-waitport": "how the bridge comes up",
    "bridge-gcint": "how the bridge works",
    "bridge-hashel": "how the bridge lays out its table",
    "bridge-mcqifaddr": "queries come from `multicast.querier.address_v4`",
    "bridge-mcmi": "members are forgotten after what follows of the querier's timers (RFC 9776, 8.4)",
    "bridge-mcqpi": "another querier is given up after what follows of its timers (RFC 9776, 8.5)",
    "bridge-hw": "the bridge's own address",
    "bridge-vlan-protocol": "tags are those of 802.1Q",
    "bridge-unicast-flood": "packets to hosts that nobody knows are looked for by the controller",
    "bridge-learning": "hosts are learnt by the controller",
}


def read_interfaces(source: InputFile, model: BridgeModel, faults: list[Fault]) -> None:
    """Read a file into a model; what is wrong with it goes to `faults`."""
    _Interfaces(source, model, faults).read()


class _Interfaces:
    """Goes through the stanzas of one file."""

    def __init__(self, source: InputFile, model: BridgeModel, faults: list[Fault]) -> None:
        self._source = source
        self._model = model
        self._report: ImportReport = model.report
        self._faults = faults
        self._ports_left = MAX_PORTS

    def read(self) -> None:
        lines = list(self._logical_lines())
        self._find_bridges(lines)
        name = kind = ""
        for place, line in lines:
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if words[0] in _STANZAS:
                kind, name = words[0], words[1] if len(words) > 1 else ""
                self._stanza(words, place)
            elif kind == "iface" or kind == "vlan":
                self._option(name, kind, words[0].replace("_", "-"), words[1:], place)
            else:
                self._fault(place, f"{quoted(words[0])} stands in no stanza")

    def _find_bridges(self, lines: Sequence[tuple[Place, str]]) -> None:
        """Learn which interfaces are bridges: what they say of VLANs before they name their ports is of these."""
        name = ""
        for place, line in lines:
            words = line.split()
            if words and words[0] in _STANZAS:
                name = words[1] if words[0] == "iface" and len(words) > 1 else ""
            elif name and words and words[0].replace("_", "-") in ("bridge-ports", "bridge-vlan-aware"):
                self._model.bridge(name, place)

    def _logical_lines(self) -> Iterator[tuple[Place, str]]:
        """Yield lines, those put together that end in a backslash."""
        lines = self._source.text.splitlines()
        if len(lines) > MAX_LINES:
            raise BadConfiguration([Fault(self._source.name, 0, f"more than {MAX_LINES} lines")])
        first, joined = 0, ""
        for number, line in enumerate(lines, 1):
            first = first or number
            if line.endswith("\\") and not joined.lstrip().startswith("#"):
                joined += line[:-1] + " "
                continue
            yield Place(self._source.name, first, number), joined + line
            first, joined = 0, ""
        if joined:
            yield Place(self._source.name, first, len(lines)), joined

    def _fault(self, place: Place, message: str) -> None:
        self._faults.append(Fault(place.file, place.line, message))

    def _stanza(self, words: Sequence[str], place: Place) -> None:
        if words[0].startswith("source"):
            todo = f"give this command {' '.join(words[1:]) or 'the files'} too"
            self._report.impossible(place, "other files are not looked for", todo)
        elif words[0] == "iface" and len(words) > 1:
            self._report.idle(place, "the stanza of an interface")
        else:
            self._report.idle(place, _STAYS)

    def _option(self, name: str, kind: str, key: str, values: list[str], place: Place) -> None:
        model, report = self._model, self._report
        if key == "bridge-igmp-querier-src" and values:
            try:
                parse_ip(values[0])
            except ValueError:
                self._fault(place, f"{quoted(values[0])} is no address")
                return
            if model.querier_v4 is None or model.querier_v4[0] == values[0]:
                model.querier_v4 = values[0], place
                report.taken(place, "`multicast.querier.address_v4`")
            else:
                report.changed(place, f"`multicast.querier.address_v4: {model.querier_v4[0]}`, one for all VLANs")
        elif kind == "vlan" or not key.startswith(("bridge-", "up", "post-up", "pre-up")):
            report.idle(place, _STAYS)
        elif key in ("up", "post-up", "pre-up"):
            self._command(values, place)
        elif key == "bridge-ports":
            self._ports(name, values, place)
        elif key in _BRIDGE_IDLE:
            report.idle(place, _BRIDGE_IDLE[key])
        elif key in ("bridge-access", "bridge-pvid", "bridge-vids", "bridge-allow-untagged", "bridge-vlan-aware"):
            self._vlans(name, key, values, place)
        else:
            self._snooping(name, key, values, place)

    def _ports(self, name: str, values: list[str], place: Place) -> None:
        """Take the ports of a bridge, also written as ``glob swp1-4`` and ``eth0.100``."""
        bridge = self._model.bridge(name, place)
        is_glob = values[:1] == ["glob"]
        if values[:1] == ["regex"]:
            self._report.impossible(
                place, "ports by a regular expression are not known here", "name the ports one by one"
            )
            return
        for word in values[1:] if is_glob else values:
            if word == "none":
                continue
            match = _RANGE.match(word) if is_glob else None
            words = (
                [f"{match[1]}{n}" for n in range(int(match[2]), min(int(match[3]), MAX_PORTS) + 1)]
                if match
                else [word]
            )
            for port_name in words:
                self._ports_left -= 1
                if self._ports_left < 0:
                    raise BadConfiguration([Fault(place.file, place.line, f"more than {MAX_PORTS} ports")])
                parent, dot, tag = port_name.rpartition(".")
                is_tagged = bool(dot) and tag.isdecimal() and 1 <= int(tag) <= MAX_VLAN_ID
                port = self._model.port(parent if is_tagged else port_name, place)
                if is_tagged:
                    port.carried[int(tag)] = name
                if name not in port.bridges:
                    port.bridges.append(name)
                    bridge.ports.append(port.name)
        if not bridge.ports:
            self._report.idle(place, "a bridge without ports")

    def _vlans(self, name: str, key: str, values: list[str], place: Place) -> None:
        """Take what an interface says of VLANs: of itself as a port, or of all its ports as a bridge."""
        report, is_bridge = self._report, name in self._model.bridges
        if key == "bridge-vlan-aware":
            self._model.bridge(name, place).is_vlan_aware = _is_yes(values)
            report.taken(place, "its ports are in VLANs" if _is_yes(values) else "its ports are in no VLAN")
            return
        if key == "bridge-allow-untagged":
            self._model.port(name, place).takes_untagged = _is_yes(values)
            report.taken(place, "frames without a tag")
            return
        vlans = self._vlan_ids(values, place)
        if not vlans:
            return
        if key == "bridge-vids" and is_bridge:
            self._model.bridges[name].tagged = vlans
        elif key == "bridge-vids":
            self._model.port(name, place).tagged = vlans
        elif key == "bridge-pvid" and is_bridge:
            self._model.bridges[name].pvid = vlans[0]
        elif key == "bridge-pvid":
            self._model.port(name, place).pvid = vlans[0]
        else:
            self._model.port(name, place).access = vlans[0]
        report.taken(place, "VLANs of the ports that say nothing themselves" if is_bridge else "VLANs of the port")

    def _vlan_ids(self, values: Sequence[str], place: Place) -> tuple[int, ...]:
        found: list[int] = []
        for word in values:
            first, dash, last = word.partition("-")
            if not (first.isdecimal() and (not dash or last.isdecimal())):
                self._fault(place, f"{quoted(word)} is neither a VLAN nor a range of VLANs")
                return ()
            low, high = int(first), int(last or first)
            if not 1 <= low <= high <= MAX_VLAN_ID:
                self._fault(place, f"{quoted(word)}: VLANs are 1 to {MAX_VLAN_ID}")
                return ()
            found += range(low, high + 1)
        if not found:
            self._fault(place, "no VLAN is named")
        return tuple(dict.fromkeys(found))

    def _snooping(self, name: str, key: str, values: list[str], place: Place) -> None:
        """Take what is said of snooping, queriers and routers."""
        report = self._report
        text = values[0] if values else ""
        if key in _TIMERS:
            self._number(f"multicast.querier.{_TIMERS[key]}", text, place)
        elif key == "bridge-hashmax":
            self._number("limits.groups", text, place, "groups of the whole fabric, not of each bridge")
        elif key == "bridge-ageing":
            self._number("unicast.host_timeout_s", text, place)
        elif key == "bridge-mcsnoop":
            if _is_yes(values):
                report.taken(place, "groups go to those who join them")
            else:
                report.changed(place, "groups go to those who join them, while the bridge floods them")
        elif key == "bridge-mcquerier":
            if _is_yes(values):
                report.taken(place, "the controller queries")
            else:
                report.changed(place, "the controller queries nevertheless, unless a router that a rule admits does")
        elif key == "bridge-mcrouter":
            report.idle(place, "whether the bridge itself gets every group")
        elif key in ("bridge-portmcrouter", "bridge-multicast-router", "bridge-portmcfl"):
            self._by_port(name, key, values, place)
        else:
            report.impossible(
                place, f"{quoted(key)} has no counterpart", "look up what it does, and set it at the switch"
            )

    def _by_port(self, name: str, key: str, values: list[str], place: Place) -> None:
        """Take settings that stand as ``PORT=VALUE`` at a bridge, or as ``VALUE`` at a port."""
        for word in values:
            port, equals, value = word.rpartition("=")
            port = port if equals else name
            self._model.port(port, place)
            if key == "bridge-portmcfl":
                if value in ("yes", "on", "1"):
                    self._model.fast.append((port, place, port))
                else:
                    self._report.taken(place, f"{port}: a leave is asked about", port)
            elif value in ("2", "permanent"):
                self._model.routers.append((port, place, port))
            elif value in ("0", "disabled"):
                self._report.taken(place, f"{port}: nobody is a router there unless a rule admits it", port)
            else:
                what = f"{port}: a router there is known by its queries where a rule with role router admits it"
                self._report.changed(place, what, port)

    def _number(self, path: str, text: str, place: Place, how: str = "") -> None:
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0 < value < 1e9:
            self._fault(place, f"{quoted(text)} is no number above 0")
            return
        self._model.asked.append(AskedValue(path, value, place, how=how))

    def _command(self, values: list[str], place: Place) -> None:
        """Take commands of `bridge` that are run when the interface is up."""
        try:
            words = shlex.split(" ".join(values))
        except ValueError as error:
            self._fault(place, f"the command cannot be read: {error}")
            return
        if words and words[0].rpartition("/")[2] == "bridge":
            arguments = dict(zip(words[3::2], words[4::2], strict=False))
            if words[1:3] == ["mdb", "add"] and "grp" in arguments and "port" in arguments:
                add_static_group(
                    self._model, arguments["grp"], arguments["port"], arguments.get("vid", "0"), place, self._faults
                )
                return
            if words[1:3] == ["vlan", "add"] and "vid" in arguments and "dev" in arguments:
                port = self._model.port(arguments["dev"], place)
                vlans = self._vlan_ids([arguments["vid"]], place)
                if "pvid" in words and vlans:
                    port.pvid = vlans[0]
                port.tagged = tuple(dict.fromkeys([*(port.tagged or ()), *vlans]))
                self._report.taken(place, "VLANs of the port")
                return
        self._report.impossible(
            place, "commands that are run are not understood", "look up what it does, and write that by hand"
        )


def add_static_group(
    model: BridgeModel, group: str, port: str, vlan: str, place: Place, faults: list[Fault], label: str = ""
) -> None:
    """Take a group that a bridge has been given for a port; what cannot be one is reported, or is a fault."""
    try:
        prefix = parse_group_prefix(group)
    except ValueError as error:
        faults.append(Fault(place.file, place.line, str(error)))
        return
    if not vlan.isdecimal() or int(vlan) > MAX_VLAN_ID:
        faults.append(Fault(place.file, place.line, f"{quoted(vlan)} is no VLAN"))
    elif is_ssm_group(prefix.network):
        why = f"{group} is for source-specific multicast, and a static member has no source"
        model.report.impossible(place, why, "have a host at the port join it with its source", label)
    else:
        model.port(port, place)
        model.groups.append(StaticGroup(group, port, int(vlan), place, label))


def _is_yes(values: Sequence[str]) -> bool:
    return bool(values) and values[0].lower() in ("yes", "on", "1", "true")
