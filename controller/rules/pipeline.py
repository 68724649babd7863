"""The tables and priorities that all apps agree on; in OpenFlow 1.0 the same priorities stand in table 0.

0 INGRESS       free for meters per ingress port; miss: ADMIT
1 ADMIT         tagged frames: drop; punts to the controller, link-scope flooding, senders of groups at their own
                ports; what hosts send to each other is marked; miss: FORWARD
2 FORWARD       groups over their trees; other IP multicast: drop; miss: UNICAST
3 UNICAST       what hosts send, by destination MAC address; frames from other switches: LOCATION; miss: punt or drop
4 SPLIT         by part of a group's flows, the tree that it takes; entered from a sender's entry and left for it
5 VLAN_ADMIT    what ADMIT is to untagged frames, for those with a tag that a port may carry
6 VLAN_FORWARD  what FORWARD is, for the same
7 VLAN_UNICAST  what UNICAST is, for the same
8 LOCATION      by location address (`controller/unicast/locations.py`); miss: punt or drop

Frames with a tag have tables of their own, so that the entries for untagged frames stay as they are. LOCATION comes
after both chains, for a table can send frames on to later ones only. Nothing stands in SPLIT where all that a sender
sends takes one tree, nor in 5 to 7 where no port is in a VLAN.

In the one table of OpenFlow 1.0 what a port to hosts may send in VLANs has entries of the port's own, above all that
is for any port (`at_port`). Right below them the port's other frames are dropped, so that they meet nothing of
another domain. What comes from other switches has its tag, and meets entries for its VLAN at the usual priorities.
"""

from __future__ import annotations

INGRESS, ADMIT, FORWARD, UNICAST = range(4)
SPLIT, VLAN_ADMIT, VLAN_FORWARD, VLAN_UNICAST, LOCATION = range(4, 9)
TABLE_COUNT = LOCATION + 1
"""Tables that a switch of OpenFlow 1.3 must have."""

OPENFLOW_1_0 = 1
OPENFLOW_1_3 = 4

DISCOVERY_TAG = 0x5601
MULTICAST_TAG = 0x5602
UNICAST_TAG = 0x5603
MONITOR_TAG = 0x5604
CLUSTER_TAG = 0x5605
"""Of no flow entry: as whoever has it, the app that asks for roles shares switches with the others."""
APP_TAGS = frozenset({DISCOVERY_TAG, MULTICAST_TAG, UNICAST_TAG, MONITOR_TAG})
"""The upper 16 bits of all cookies that are this controller's."""
DATAPATH_XID_TAG = 0xA0
"""Upper 8 bits of the transaction ids of what apps share: those of an app are 0xA0 and the last digit of its tag."""

SENDER_COOKIE_BIT = 1 << 47
"""Set in the cookies of sender entries, so that their counters can be read alone."""

PRIORITY_PORT_VLAN = 300
PRIORITY_PORT_TAGGED = 200
PRIORITY_PORT_UNTAGGED = 100
PRIORITY_VLAN_TAGGED = 65535
PRIORITY_ECHO = 65100
PRIORITY_LLDP = 65000
PRIORITY_HELD = 64000
PRIORITY_DOUBLE_TAGGED = 63900
PRIORITY_PORT_CLOSED = 62000
PRIORITY_MEMBERSHIP_PENALTY = 61000
PRIORITY_MEMBERSHIP = 60000
PRIORITY_ADDRESS_RESOLUTION = 59000
PRIORITY_PIM_VLAN = 52500
PRIORITY_PIM = 52000
PRIORITY_LINK_SCOPE_LEG = 51500
PRIORITY_LINK_SCOPE_GROUP = 51000
PRIORITY_LINK_SCOPE_VLAN = 50500
PRIORITY_LINK_SCOPE = 50000
PRIORITY_SENDER = 40000
PRIORITY_UNKNOWN_PENALTY = 35000
PRIORITY_UNKNOWN_SENDER = 30000
PRIORITY_CHANNEL = 20000
PRIORITY_GROUP = 10000
PRIORITY_PORT_SET = 5000
PRIORITY_STALE_VERSION = 150
PRIORITY_OTHER_MULTICAST = 100
PRIORITY_MARK_ADDRESS = 30
PRIORITY_MARK_HOST = 20
PRIORITY_MARK_PORT = 10
PRIORITY_QUEUE_ONWARD = 5
PRIORITY_TRUNK = 60
PRIORITY_PINNED_WAY = 57
PRIORITY_LOCATION = 55
PRIORITY_PINNED_FLOW = 52
PRIORITY_LABEL = 50
PRIORITY_UNICAST = 50
PRIORITY_UNTAGGED_MISS = 1
PRIORITY_MISS = 0

ETH_TYPE_IPV4 = 0x0800
ETH_TYPE_IPV6 = 0x86DD
IPPROTO_IGMP = 2
IPPROTO_ICMPV6 = 58
IPPROTO_PIM = 103
MLD_TYPES = (130, 131, 132, 143)


_LOW_PRIORITIES = 200


def at_port(priority: int) -> int:
    """Return the priority, in OpenFlow 1.0, of an entry for what one port may send in VLANs.

    `priority` is that of the same entry in the fabric's own domain, `PRIORITY_MEMBERSHIP_PENALTY` at most. Those of
    this pipeline, and those one above them, keep their order.
    """
    if priority < _LOW_PRIORITIES:
        return PRIORITY_PORT_CLOSED + priority
    return PRIORITY_PORT_CLOSED + _LOW_PRIORITIES + priority // 50 + priority % 50
