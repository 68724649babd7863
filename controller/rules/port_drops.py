"""The keys of entries that drop what a port sends, for a while or until more is known, whatever its domain."""

from __future__ import annotations

from controller.config.vlans import PortVlans
from controller.rules.model import FlowKey, Match
from controller.rules.pipeline import ADMIT, OPENFLOW_1_0, VLAN_ADMIT, at_port


def drop_keys(ofp_version: int, port: PortVlans | None, priority: int, match: Match) -> list[FlowKey]:
    """Return the keys of the entries that drop frames of a port where it is decided what ports may send.

    Parameters
    ----------
    ofp_version : int
        1 (OpenFlow 1.0) or 4 (1.3).
    port : PortVlans or None
        The VLANs of the port; None where the policy puts no port of the fabric into one.
    priority : int
        What the entry has in the fabric's own domain; it comes right before what it drops in VLANs too.
    match : Match
        The port and what of its frames is dropped, without a word of tags.
    """
    if ofp_version != OPENFLOW_1_0:
        return [FlowKey(table, priority, match) for table in ((ADMIT,) if port is None else (ADMIT, VLAN_ADMIT))]
    own = [FlowKey(0, priority, match)]
    return own if port is None else own * (port.untagged == 0) + old_drop_keys(port, priority, match)


def old_drop_keys(port: PortVlans, priority: int, match: Match) -> list[FlowKey]:
    """Return the keys, in OpenFlow 1.0, of the entries that drop what a port sends in VLANs."""
    if port.untagged != 0:
        return [FlowKey(0, at_port(priority), match._replace(tagged=True))]
    return [FlowKey(0, at_port(priority), match._replace(vlan_id=vlan_id)) for vlan_id in sorted(port.tagged)]
