"""What `bridge -j` and `ip -j` tell of a running bridge: VLANs of ports, its table of groups, routers, and timers."""

from __future__ import annotations

from collections.abc import Mapping

import yaml

from controller.config.vlans import MAX_VLAN_ID
from controller.migration.bridge_interfaces import add_static_group
from controller.migration.bridge_model import BridgeModel
from controller.migration.querier_values import AskedValue
from controller.migration.report import BadConfiguration, Fault, InputFile
from controller.migration.yaml_file import YamlEntry, YamlFile, json_faults

_CENTISECONDS = 0.01
_TIMERS = {
    "mcast_query_interval": ("multicast.querier.query_interval_s", _CENTISECONDS),
    "mcast_query_response_interval": ("multicast.querier.response_interval_s", _CENTISECONDS),
    "mcast_last_member_interval": ("multicast.querier.last_member_interval_s", _CENTISECONDS),
    "mcast_startup_query_interval": ("multicast.querier.startup_interval_s", _CENTISECONDS),
    "mcast_last_member_count": ("multicast.querier.last_member_count", 1.0),
    "mcast_startup_query_count": ("multicast.querier.startup_count", 1.0),
    "mcast_igmp_version": ("multicast.querier.igmp_version", 1.0),
    "mcast_mld_version": ("multicast.querier.mld_version", 1.0),
    "mcast_hash_max": ("limits.groups", 1.0),
    "ageing_time": ("unicast.host_timeout_s", _CENTISECONDS),
}
"""What the kernel calls timers and limits, the setting of each, and the kernel's unit in terms of the setting's."""

_PERMANENT_ROUTER = 2


def read_bridge_json(source: InputFile, model: BridgeModel, faults: list[Fault]) -> None:
    """Read one document into a model: of `bridge vlan show`, of `bridge mdb show`, or of `ip -d link`.

    BadConfiguration is raised for a text that is no JSON, or none of these three.
    """
    wrong = json_faults(source)
    if wrong:
        raise BadConfiguration(wrong)
    file = YamlFile(source, faults)
    items = list(file.items(file.root, "a list")) if isinstance(file.root, yaml.SequenceNode) else []
    entries = [file.entries(item, "an object") for item in items]
    if not entries or not all(isinstance(item, yaml.MappingNode) for item in items):
        raise BadConfiguration([Fault(source.name, 1, "no list of objects, as `bridge -j` and `ip -j` print it")])
    # The list itself, and lines with brackets alone, have nothing of their own to say.
    model.report.idle(file.place(file.root), "what holds the lines below")
    for item, fields in zip(items, entries, strict=True):
        model.report.idle(file.place(item), "an object")
        if "vlans" in fields:
            _vlans(file, item, fields, model)
        elif "mdb" in fields:
            _groups(file, fields, model, faults)
        elif "ifname" in fields:
            _link(file, fields, model)
        else:
            file.fault(item, "neither VLANs (`vlans`), nor groups (`mdb`), nor an interface (`ifname`)")


def _word(fields: Mapping[str, YamlEntry], key: str) -> str:
    entry = fields.get(key)
    return str(entry.node.value) if entry is not None and isinstance(entry.node, yaml.ScalarNode) else ""


def _vlans(file: YamlFile, item: yaml.Node, fields: dict[str, YamlEntry], model: BridgeModel) -> None:
    """Take the VLANs of one interface."""
    name = _word(fields, "ifname")
    if name in model.bridges:
        model.report.idle(file.place(item), f"the bridge {name} itself, which stays on this machine", name)
        return
    port = model.port(name, fields["ifname"].place if "ifname" in fields else file.place(item))
    port.is_told_in_full = True
    tagged: list[int] = []
    for one in file.items(fields["vlans"].node, "a list of VLANs"):
        of = file.entries(one, "a VLAN")
        first = file.integer(of["vlan"].node, 1, MAX_VLAN_ID, "VLAN") if "vlan" in of else None
        last = file.integer(of["vlanEnd"].node, 1, MAX_VLAN_ID, "VLAN") if "vlanEnd" in of else first
        if first is None or last is None:
            file.fault(one, "expected `vlan` with a number")
            continue
        flags = (
            {str(getattr(flag, "value", "")) for flag in file.items(of["flags"].node, "flags")}
            if "flags" in of
            else set()
        )
        place, label = file.place(one), f"{name}, VLAN {first}" + (f"-{last}" if last != first else "")
        is_untagged = "Egress Untagged" in flags
        if "PVID" in flags:
            port.pvid = first
        if is_untagged and "PVID" not in flags:
            why = "frames without a tag would come in in one VLAN and go out in another"
            model.report.impossible(
                place, why, "give the port one VLAN without tag, or register groups by `vlans.mvr`", label
            )
        elif "PVID" in flags and not is_untagged:
            tagged += range(first, last + 1)
            what = "frames come in without a tag, and here go out without one too"
            model.report.changed(place, what, label)
        else:
            tagged += range(first, last + 1)
            model.report.taken(place, "without a tag" if is_untagged else "with a tag", label)
    port.tagged = tuple(tagged)


def _groups(file: YamlFile, fields: dict[str, YamlEntry], model: BridgeModel, faults: list[Fault]) -> None:
    """Take the table of groups, and the ports with routers."""
    for one in file.items(fields["mdb"].node, "a list of groups"):
        of = file.entries(one, "a group")
        group, port, state = _word(of, "grp"), _word(of, "port"), _word(of, "state")
        place, label = file.place(one), f"{group} at {port}"
        if state == "temp":
            model.report.idle(place, "learnt: hosts report what they are in again", label)
        elif port in model.bridges or port == _word(of, "dev"):
            model.report.idle(place, "the bridge itself, which stays on this machine", label)
        else:
            add_static_group(model, group, port, _word(of, "vid") or "0", place, faults, label)
    if "router" not in fields or not isinstance(fields["router"].node, yaml.MappingNode):
        return
    model.report.idle(fields["router"].place._replace(last=fields["router"].place.line), "ports with routers")
    for bridge in file.entries(fields["router"].node, "bridges").values():
        for one in file.items(bridge.node, "a list of ports"):
            of = file.entries(one, "a port")
            port = _word(of, "port")
            if _word(of, "type") == "permanent":
                model.port(port, file.place(one))
                model.routers.append((port, file.place(one), port))
            else:
                model.report.idle(
                    file.place(one), "learnt: routers are heard again, and a rule must admit them", port
                )


def _link(file: YamlFile, fields: dict[str, YamlEntry], model: BridgeModel) -> None:
    """Take a bridge with its timers, or a port of one."""
    name, place = _word(fields, "ifname"), fields["ifname"].place
    info = file.entries(fields["linkinfo"].node, "an object") if "linkinfo" in fields else {}
    if _word(info, "info_kind") == "bridge":
        bridge = model.bridge(name, place)
        data = file.entries(info["info_data"].node, "an object") if "info_data" in info else {}
        bridge.is_vlan_aware = _word(data, "vlan_filtering") == "1"
        for key, entry in data.items():
            _bridge_value(file, name, key, entry, model)
    if _word(info, "info_slave_kind") == "bridge" or "master" in fields:
        master = _word(fields, "master")
        port = model.port(name, place)
        if master and master not in port.bridges:
            port.bridges.append(master)
            model.bridge(master, place).ports.append(name)
        slave = file.entries(info["info_slave_data"].node, "an object") if "info_slave_data" in info else {}
        for key, entry in slave.items():
            value = _word(slave, key)
            if key == "fastleave" and value == "true":
                model.fast.append((name, entry.place, f"{name} {key}"))
            elif key == "multicast_router" and value == str(_PERMANENT_ROUTER):
                model.routers.append((name, entry.place, f"{name} {key}"))


def _bridge_value(file: YamlFile, name: str, key: str, entry: YamlEntry, model: BridgeModel) -> None:
    label = f"{name} {key}"
    if key in _TIMERS:
        number = file.integer(entry.node, 0, 1 << 62, key)
        path, unit = _TIMERS[key]
        if number:
            how = "groups of the whole fabric, not of each bridge" if key == "mcast_hash_max" else ""
            model.asked.append(AskedValue(path, round(number * unit, 2), entry.place, label, how))
    elif key == "mcast_snooping" and _word({key: entry}, key) == "0":
        model.report.changed(entry.place, "groups go to those who join them, while the bridge floods them", label)
    elif key == "mcast_querier":
        if _word({key: entry}, key) == "1":
            model.report.taken(entry.place, "the controller queries", label)
        else:
            what = "the controller queries nevertheless, unless a router that a rule admits does"
            model.report.changed(entry.place, what, label)
