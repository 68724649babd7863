"""Open vSwitch's database as a policy: bridges, ports with their VLANs, bonds, and multicast snooping."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from controller.config.faults import quoted
from controller.config.terms import MAX_PORT_NO, SwitchPort
from controller.config.vlans import MAX_VLAN_ID
from controller.migration.draft import PolicyDraft, VlanDraft
from controller.migration.ovs_tables import OvsRow, read_rows
from controller.migration.places import Places
from controller.migration.querier_values import AskedValue, write_values
from controller.migration.report import BadConfiguration, Fault, ImportReport, InputFile, Place

MAX_ROWS = 65_536
MAX_LEGS = 16
_LOCAL_PORT = 0xFFFFFFFE
_ROBUSTNESS, _RESPONSE_S = 2, 10
_NOTE = (
    "Open vSwitch floods groups that nobody has joined, unless told otherwise, and all of them where it does not "
    "snoop. Here a port gets the groups that its hosts join (IGMP, MLD), and those of `static_members`."
)
_STATE = "the switch's own, which stays there"
_TUNNELS = ("vxlan", "geneve", "gre", "ip6gre", "stt", "lisp", "erspan", "bareudp", "gtpu", "srv6")


class _Refused(NamedTuple):
    why: str
    todo: str


_REFUSED: dict[str, _Refused] = {
    "stp_enable": _Refused("spanning tree of the switch's own", "turn it off: the controller sees to loops"),
    "rstp_enable": _Refused("spanning tree of the switch's own", "turn it off: the controller sees to loops"),
    "mirrors": _Refused("no mirrors", "leave them to the switch"),
    "netflow": _Refused("no NetFlow", "leave it to the switch"),
    "sflow": _Refused("no sFlow", "leave it to the switch"),
    "ipfix": _Refused("no IPFIX", "leave it to the switch"),
    "flood_vlans": _Refused("VLANs that learn no hosts", "do without them"),
    "qos": _Refused("queues of one's own", "use `queues`, by which the controller sets queues up"),
    "cvlans": _Refused("no customer VLANs", "use `vlans.double_tagged`"),
    "protected": _Refused("ports that are kept apart", "give them VLANs of their own"),
    "ingress_policing_rate": _Refused("no limits of rates by host", "leave it to the switch"),
    "ingress_policing_kpkts_rate": _Refused("no limits of rates by host", "leave it to the switch"),
}
_BRIDGE_SET = ("name", "datapath_id", "ports", "mcast_snooping_enable", "other_config", "fail_mode", "protocols")
_PORT_SET = ("name", "tag", "trunks", "vlan_mode", "interfaces", "bond_mode", "lacp", "other_config")


def read_ovs(sources: Sequence[InputFile], places: Places) -> tuple[PolicyDraft, ImportReport]:
    """Return the policy that databases of Open vSwitch come to, and what became of the lines.

    Sources are tables as `ovs-vsctl --format=json list Bridge` (and `Port`, and `Interface`) or
    `ovsdb-client dump --format=json` print them, or what `ovs-vsctl show` prints, which lacks datapath ids and port
    numbers: `places` says these then. BadConfiguration is raised for other files.
    """
    reader = _Ovs(places)
    for source in sources:
        reader.file(source)
    return reader.finish()


class _Ovs:
    """Reads all rows, since ports name interfaces and bridges name ports, and then makes a policy of them."""

    def __init__(self, places: Places) -> None:
        self.draft = PolicyDraft()
        self.report = ImportReport(())
        self.faults: list[Fault] = []
        self._given = places
        self._rows: dict[str, dict[str, OvsRow]] = {"Bridge": {}, "Port": {}, "Interface": {}}
        self._asked: list[AskedValue] = []
        self._first = ""

    def file(self, source: InputFile) -> None:
        self._first = self._first or source.name
        self.report.add(source)
        for row in read_rows(source, self.report, self.faults):
            if sum(map(len, self._rows.values())) >= MAX_ROWS:
                raise BadConfiguration([Fault(source.name, row.place.line, f"more than {MAX_ROWS} rows")])
            key = str(row.get("_uuid") or row.name)
            self._rows[row.table][key] = row

    def finish(self) -> tuple[PolicyDraft, ImportReport]:
        if not self._rows["Bridge"] and not self._rows["Port"]:
            self.faults.append(Fault(self._first, 0, "no table Bridge and no table Port"))
        dpids = {row.name: self._bridge(row) for row in self._rows["Bridge"].values()}
        for row in self._rows["Interface"].values():
            self._interface(row)
        for row, bridge in self._ports():
            self._port(row, bridge, dpids.get(bridge))
        write_values(self.draft, self.report, self._asked)
        if self.faults:
            raise BadConfiguration(sorted(self.faults))
        self.report.note(_NOTE)
        return self.draft, self.report

    def _ports(self) -> list[tuple[OvsRow, str]]:
        """Return the ports with the names of their bridges, in the order of the bridges' lists."""
        found: dict[str, str] = {}
        by_key = self._rows["Port"]
        by_name = {row.name: key for key, row in by_key.items()}
        for bridge in self._rows["Bridge"].values():
            for key in _items(bridge.get("ports")):
                known = key if key in by_key else by_name.get(key)
                if known is not None:
                    found[known] = bridge.name
        return [
            (row, found.get(key, "")) for key, row in sorted(by_key.items(), key=lambda item: _order(item, found))
        ]

    def _bridge(self, row: OvsRow) -> int | None:
        """Take a bridge as a switch, and report its columns."""
        name, text = row.name, str(row.get("datapath_id") or "")
        dpid = self._given.switches.get(name)
        try:
            dpid = int(text, 16) if text and dpid is None else dpid
        except ValueError:
            self.faults.append(Fault(row.place.file, row.place.line, f"{quoted(text)} is no datapath id"))
        if dpid is None:
            todo = f"give `list Bridge` as JSON too, or --at {name}=DPID"
            self.report.impossible(row.place, "nothing says the datapath id", todo, name)
            return None
        switch, is_called = self.draft.switch(dpid, name)
        if is_called:
            self.report.taken(row.place, f"switch {switch.name}", name)
        else:
            self.report.changed(
                row.place, f"switch {switch.name}: its name is another's, or cannot name a switch", name
            )
        fail_mode = row.get("fail_mode")
        if "fail_mode" in row.cells or "datapath_id" in row.cells:
            place = row.cells["fail_mode"].place if "fail_mode" in row.cells else row.place
            if fail_mode == "secure":
                self.report.taken(place, "no packet passes without the controller's entries", f"{name} fail_mode")
            else:
                why = "without a controller the switch would forward by itself, around every rule"
                self.report.impossible(place, why, f"ovs-vsctl set-fail-mode {name} secure", f"{name} fail_mode")
        protocols = [str(word) for word in _items(row.get("protocols"))]
        if protocols:
            place, label = row.cells["protocols"].place, f"{name} protocols"
            if "OpenFlow13" in protocols:
                self.report.taken(place, "OpenFlow 1.3 is spoken", label)
            else:
                todo = f"ovs-vsctl set bridge {name} protocols=OpenFlow13"
                self.report.impossible(place, "OpenFlow 1.3 is not among them; 1.0 has no IPv6", todo, label)
        self._snooping(row)
        self._refused(row, _BRIDGE_SET)
        return dpid

    def _snooping(self, row: OvsRow) -> None:
        name = row.name
        if "mcast_snooping_enable" in row.cells:
            place, label = row.cells["mcast_snooping_enable"].place, f"{name} mcast_snooping_enable"
            if row.get("mcast_snooping_enable") is True:
                self.report.taken(place, "groups go to those who join them", label)
            else:
                self.report.changed(place, "groups go to those who join them, while the bridge floods them", label)
        for key, value in _map(row, "other_config").items():
            place, label = row.cells["other_config"].place, f"{name} other_config:{key}"
            if key == "mcast-snooping-aging-time":
                self._aging(value, place, label)
            elif key == "mcast-snooping-table-size":
                self._number("limits.groups", value, place, label, "groups of the whole fabric, not of each bridge")
            elif key == "mcast-snooping-disable-flood-unregistered":
                if str(value) == "true":
                    self.report.taken(place, "groups that nobody joined go nowhere", label)
                else:
                    self.report.changed(place, "groups that nobody joined go nowhere", label)
            elif key == "mac-aging-time":
                self._number("unicast.host_timeout_s", value, place, label)
            else:
                self.report.idle(place, _STATE, label)

    def _aging(self, value: Any, place: Place, label: str) -> None:
        """Take the life of an entry as the querier's interval that gives members that life (RFC 9776, 8.4)."""
        if not str(value).isdecimal():
            self.faults.append(Fault(place.file, place.line, f"{label}: {quoted(str(value))} is no number"))
            return
        interval = max(1.0, (int(value) - _RESPONSE_S) / _ROBUSTNESS)
        how = f"by which members live {_ROBUSTNESS} x {interval:g} + {_RESPONSE_S} s after their last report"
        self._asked.append(AskedValue("multicast.querier.query_interval_s", interval, place, label, how))

    def _number(self, path: str, value: Any, place: Place, label: str, how: str = "") -> None:
        if not str(value).isdecimal():
            self.faults.append(Fault(place.file, place.line, f"{label}: {quoted(str(value))} is no number"))
            return
        self._asked.append(AskedValue(path, int(value), place, label, how))

    def _interface(self, row: OvsRow) -> None:
        kind, name = str(row.get("type") or ""), row.name
        place = row.cells["type"].place if "type" in row.cells else row.place
        self.report.idle(row.place, "an interface of the switch", f"interface {name}")
        if kind in _TUNNELS:
            what = "a tunnel: a link where it leads to a switch of the fabric, which LLDP finds"
            self.report.changed(place, what, f"{name} type")
        self._refused(row, ("name", "type", "ofport"))

    def _port(self, row: OvsRow, bridge: str, dpid: int | None) -> None:
        """Take a port with its VLANs, and report its columns."""
        interfaces = self._interfaces(row)
        kinds = {str(interface.get("type") or "") for interface in interfaces}
        if row.name == bridge or (kinds == {"internal"} and _LOCAL_PORT in {i.get("ofport") for i in interfaces}):
            self.report.idle(row.place, "the bridge's own port, which stays on this machine", row.name)
            return
        if kinds == {"patch"}:
            self.report.changed(
                row.place, "a link between bridges: LLDP finds it, and it carries every VLAN", row.name
            )
            return
        where = self._places(row, interfaces, dpid)
        self._refused(row, _PORT_SET)
        if not where:
            todo = f"give `list Interface` as JSON too, or --at {row.name}=DPID:PORT"
            self.report.impossible(row.place, f"nothing says which port {row.name} is", todo, row.name)
            return
        self.report.taken(row.place, f"port {', '.join(str(place.port_no) for place in where)}", row.name)
        vlans = self._vlans(row)
        for place, called in zip(where, [i.name for i in interfaces] or [row.name], strict=False):
            self.draft.switch(place.dpid, f"switch-{place.dpid:x}")
            self.draft.name_port(place, called)
            if vlans is not None:
                self.draft.vlans[place] = vlans, f"{row.place}, {row.name}"
        self._bond(row, where)
        self._port_settings(row, where)

    def _interfaces(self, port: OvsRow) -> list[OvsRow]:
        rows = self._rows["Interface"]
        by_name = {interface.name: interface for interface in rows.values()}
        keys = _items(port.get("interfaces")) or [port.name]
        found = [row for key in keys if (row := rows.get(key) or by_name.get(key)) is not None]
        # The set of a port's interfaces is in the order of their UUIDs, which says nothing.
        return sorted(found, key=lambda interface: interface.name)

    def _places(self, row: OvsRow, interfaces: Sequence[OvsRow], dpid: int | None) -> list[SwitchPort]:
        """Return where the interfaces of a port are: as it was said, or by their number at the bridge."""
        found = []
        for interface in interfaces or [row]:
            number = interface.get("ofport")
            if interface.name in self._given.ports:
                found.append(self._given.ports[interface.name])
            elif dpid is not None and isinstance(number, int) and 1 <= number <= MAX_PORT_NO:
                found.append(SwitchPort(dpid, number))
            else:
                return []
        return found

    def _vlans(self, row: OvsRow) -> VlanDraft | None:
        """Return the VLANs of a port (by default `access` with a tag, else `trunk`), and report the columns."""
        tag, trunks, mode = (
            row.get("tag"),
            [int(v) for v in _items(row.get("trunks")) if str(v).isdecimal()],
            row.get("vlan_mode"),
        )
        for vlan_id in [*([] if tag is None else [tag]), *trunks]:
            if not isinstance(vlan_id, int) or not 0 <= vlan_id <= MAX_VLAN_ID:
                self.faults.append(Fault(row.place.file, row.place.line, f"{row.name}: {vlan_id} is no VLAN"))
                return None
        for column in ("tag", "trunks", "vlan_mode"):
            if row.get(column) is not None and mode not in ("native-tagged", "dot1q-tunnel"):
                self.report.taken(row.cells[column].place, "VLANs of the port", f"{row.name} {column}")
        if mode is None and tag is not None and trunks:
            place, label = row.cells["trunks"].place, f"{row.name} trunks"
            if "vlan_mode" in row.cells:
                self.report.changed(
                    place, "left out: with a tag and no `vlan_mode` the switch does not go by them", label
                )
            else:
                mode = "native-untagged"
                self.report.changed(place, "`show` tells no `vlan_mode`: taken for native-untagged", label)
        mode = mode or ("trunk" if tag is None else "access")
        tagged = None if not trunks else tuple(vlan for vlan in trunks if vlan not in (0, tag))
        if mode == "access":
            return VlanDraft(int(tag or 0))
        if mode == "dot1q-tunnel":
            todo = "make the port an access port, or use `vlans.double_tagged: pass` on trunks"
            self.report.impossible(
                row.cells["vlan_mode"].place, "a second tag is put on no frame here", todo, f"{row.name} vlan_mode"
            )
            return None
        if mode == "native-tagged":
            what = "the native VLAN goes out without a tag here, as with native-untagged"
            self.report.changed(row.cells["vlan_mode"].place, what, f"{row.name} vlan_mode")
        if mode == "trunk":
            untagged = 0 if not trunks or 0 in trunks else None
            return VlanDraft(untagged, tagged) if tagged != () else VlanDraft(untagged or 0)
        return VlanDraft(int(tag or 0), tagged)

    def _bond(self, row: OvsRow, where: list[SwitchPort]) -> None:
        if len(where) < 2:
            return
        lacp, mode = row.get("lacp"), row.get("bond_mode")
        kind = "lacp" if lacp in ("active", "passive") else "active-backup" if mode == "active-backup" else "static"
        place = row.cells["interfaces"].place if "interfaces" in row.cells else row.place
        if len(where) > MAX_LEGS:
            self.report.impossible(
                place, f"a bond of {len(where)} ports", f"use {MAX_LEGS} at most", f"{row.name} interfaces"
            )
            return
        name = row.name if row.name[:1].isalpha() else f"bond-{row.name}"
        self.draft.aggregations[name] = kind, where, str(row.place)
        if mode == "balance-slb":
            todo = "have the other side speak LACP, or use one port at a time"
            self.report.impossible(
                row.cells["bond_mode"].place,
                "hosts are not spread by source MAC address",
                todo,
                f"{row.name} bond_mode",
            )
        for column in ("interfaces", "lacp", *(() if mode == "balance-slb" else ("bond_mode",))):
            if row.get(column) is not None:
                self.report.taken(
                    row.cells[column].place, f"a link aggregation group, {kind}", f"{row.name} {column}"
                )

    def _port_settings(self, row: OvsRow, where: list[SwitchPort]) -> None:
        for key, value in _map(row, "other_config").items():
            place, label = row.cells["other_config"].place, f"{row.name} other_config:{key}"
            if key in ("mcast-snooping-flood", "mcast-snooping-flood-reports") and str(value) == "true":
                if len(where) > 1:
                    why = "a link aggregation group is no router port"
                    self.report.impossible(place, why, "name its groups in `static_members`", label)
                    continue
                self.draft.router_ports[where[0]] = str(row.place)
                if key == "mcast-snooping-flood":
                    self.report.taken(place, "a router port, which gets every group", label)
                else:
                    self.report.changed(place, "a router port, which gets every group, not reports alone", label)
            else:
                self.report.idle(place, _STATE, label)

    def _refused(self, row: OvsRow, read: Sequence[str]) -> None:
        """Report the columns that ask for something a policy has not; all others are the switch's own affair."""
        for column, cell in row.cells.items():
            if column in _REFUSED and column not in read and cell.value not in (None, [], {}, "", False, 0):
                self.report.impossible(cell.place, *_REFUSED[column], f"{row.name} {column}")


def _items(value: Any) -> list[Any]:
    """Return the members of a set, which stands for itself where it has one."""
    return value if isinstance(value, list) else [] if value is None else [value]


def _map(row: OvsRow, column: str) -> dict[str, Any]:
    value = row.get(column)
    return value if isinstance(value, dict) else {}


def _order(item: tuple[str, OvsRow], bridges: dict[str, str]) -> tuple[Any, ...]:
    key, row = item
    return (bridges.get(key, ""), row.place, row.name)
