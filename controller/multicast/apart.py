"""What switches do for channels that are under covering trees by themselves, beside the others of their group."""

from __future__ import annotations

from collections.abc import Mapping

from controller.multicast.covers import Covers, has_hosts
from controller.multicast.duties import members_of, sender_entry
from controller.multicast.group import Group
from controller.multicast.router_table import RouterInterests
from controller.rules.compile import COVERED_VERSIONS, SenderEntry, SwitchDuty, channel_duties
from controller.rules.compile_cover import CoverDuty
from controller.rules.compile_shared import ApartDuty, GroupDuty, TreeDuty


def with_apart(
    group: Group, covers: Covers, own: Mapping[int, GroupDuty], routers: RouterInterests
) -> dict[int, GroupDuty]:
    """Return what switches do for a group, of what they do on its own tree, with its channels that are apart."""
    apart = group.apart or {}
    members = members_of(group, apart, routers)
    parts: dict[int, list[TreeDuty]] = {}
    for source, number in sorted(apart.items()):
        cover = covers.trees.get(number)
        if cover is None:
            continue
        version = COVERED_VERSIONS + number
        senders: dict[int, list[SenderEntry]] = {}
        for key, sender in group.senders.items():
            if sender.admitted and key.address == source:
                senders.setdefault(key.dpid, []).append(sender_entry(key, sender, False))
        channels = channel_duties(cover.adjacent, cover.port, members, (source,))
        for dpid in sorted(cover.adjacent):
            duty = SwitchDuty(version, channels[dpid], tuple(sorted(senders.get(dpid, ()))))
            if has_hosts(duty):
                parts.setdefault(dpid, []).append(duty)
            elif len(cover.adjacent[dpid]) > 1:
                parts.setdefault(dpid, []).append(CoverDuty(version, (), (), cover.outputs(dpid)))
    found = dict(own)
    for dpid, at_switch in parts.items():
        found[dpid] = _together(own.get(dpid), tuple(at_switch))  # type: ignore[arg-type]
    return found


def _together(own: TreeDuty | None, apart: tuple[TreeDuty, ...]) -> ApartDuty:
    every = apart if own is None else (own, *apart)
    channels = tuple(channel for duty in every for channel in duty.channels)
    senders = tuple(sender for duty in every for sender in duty.senders)
    return ApartDuty(apart[0].tree_version, channels, senders, own, apart)
