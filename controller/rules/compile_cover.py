"""Entries of a group under a covering tree: switches without its hosts have one entry for all groups under that tree.

A covering tree is one that many groups have in common while they are silent. Packets carry its number in their
destination MAC address, and switches in between go by that alone. Switches with hosts of a group go by the IP address
of the group too; one that has none drops what comes, as it does with every packet of a group that it does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from controller.rules.compile import COVER_PREFIX, COVERED_VERSIONS, ChannelDuty, SenderEntry
from controller.rules.cookies import SHARED_COOKIE
from controller.rules.model import Action, FlowEntry, FlowKey, Match, Output, SetEthDst
from controller.rules.pipeline import FORWARD, PRIORITY_PORT_SET, VLAN_FORWARD

HIGHEST_COVER = 0xFFFF
"""The highest number of a covering tree; the lowest is 1."""

STAND_IN_VERSION = 1
"""The tree version by which the entries of switches with hosts are made, before they get the address of a cover."""


class CoverDuty(NamedTuple):
    """What a switch does that has no hosts of a group under a covering tree: it sends by all `ports` of the tree."""

    tree_version: int
    channels: tuple[ChannelDuty, ...]
    senders: tuple[SenderEntry, ...]
    ports: tuple[int, ...]


def is_covered(tree_version: int) -> bool:
    """Tell whether a group is under a covering tree, by its version."""
    return tree_version > COVERED_VERSIONS


def cover_of(tree_version: int) -> int:
    """Return the number of the covering tree of a group's version, 0 or less where it is under none."""
    return tree_version - COVERED_VERSIONS


def cover_mac(number: int) -> bytes:
    """Return the destination MAC address that packets carry over a covering tree, 1 to `HIGHEST_COVER`.

    It is of no group, and of no tree version or set of ports: each of these differs in the second byte.
    """
    return COVER_PREFIX + number.to_bytes(2, "big")


@lru_cache(maxsize=4096)
def cover_rule(tree_version: int, ports: tuple[int, ...], in_vlan: bool = False) -> FlowEntry:
    """Return the entry of a switch of OpenFlow 1.3 for all groups under a covering tree of which it has no hosts.

    Those in VLANs have one for all VLANs, in the table of their own.
    """
    match = Match(eth_dst=cover_mac(cover_of(tree_version)))
    table = VLAN_FORWARD if in_vlan else FORWARD
    return FlowEntry(FlowKey(table, PRIORITY_PORT_SET, match), tuple(map(Output, ports)), SHARED_COOKIE)


def in_covered_form(
    tree_version: int, carried: bytes, rules: Mapping[FlowKey, FlowEntry]
) -> dict[FlowKey, FlowEntry]:
    """Return the entries of a switch of OpenFlow 1.3 that has hosts of a group under a covering tree.

    Parameters
    ----------
    tree_version
        That of the group.
    carried
        The destination MAC address by which `rules` go, and which they write into packets.
    rules
        The entries that say what the switch does, made for another tree version.
    """
    mac = cover_mac(cover_of(tree_version))
    found: dict[FlowKey, FlowEntry] = {}
    for key, rule in rules.items():
        if key.match.eth_dst == carried:
            key = key._replace(match=key.match._replace(eth_dst=mac))
        found[key] = rule._replace(key=key, actions=_carried_by(mac, carried, rule.actions))
    return found


def _carried_by(mac: bytes, carried: bytes, actions: tuple[Action, ...]) -> tuple[Action, ...]:
    """Return actions that write one address into packets in the place of another."""
    other = SetEthDst(mac)
    return tuple(other if isinstance(action, SetEthDst) and action.mac == carried else action for action in actions)
