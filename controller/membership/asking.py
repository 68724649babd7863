"""Asking the members of one group, of which nobody is known to have left, whether they still want it."""

from __future__ import annotations

from controller.membership.core import MembershipCore
from controller.membership.events import MembershipEffect
from controller.membership.specific_queries import SpecificQueries


def ask_members(core: MembershipCore, group: bytes, now: float) -> list[MembershipEffect]:
    """Ask at each port with members of a group, as after a leave: who does not answer in time is a member no more.

    Nobody is asked where another router is the querier, or the group has no queries of its own (IGMPv1).
    """
    effects = core.on_deadline(now)
    table, queriers = core.members_table, core.queriers
    for port in list(core.ports.values()):
        membership = port.groups.get(group)
        if membership is None or not port.active or membership.queries is not None:
            continue
        family, timing = membership.family, queriers.timing(membership.family, port.dpid)
        limit = now + timing.last_member_time_s
        is_older = family == 4 and table.settings.version(family) == 1
        if is_older or not queriers.is_querier(family, port.dpid) or membership.group_due() <= limit:
            continue
        queries = membership.queries = SpecificQueries(membership)
        queries.ask_group(now, timing.last_member_count)
        membership.lower((), limit, core.timers)
        table.fire(queries, now, effects)
    return effects
