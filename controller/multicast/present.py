"""What the policy in force says of the members and senders that are there, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

from controller.admission import Role
from controller.admission.host import Decision
from controller.membership.events import FilterMode, Member
from controller.multicast.effects import Audit
from controller.multicast.gate import Gate
from controller.multicast.groups import GroupPlane
from controller.multicast.memberships import Memberships
from controller.wire.addresses import is_link_scope_group


def present_decisions(gate: Gate, memberships: Memberships, plane: GroupPlane) -> Iterator[Audit]:
    """Yield the decisions about the members of each group, then about its senders; they are not made anew.

    Anything may happen between; who leaves meanwhile may still be told of.
    """
    for group in list(memberships.groups()):
        if not is_link_scope_group(group):
            for member in list(memberships.members_of(group)):
                yield from _of_member(gate, member)
    for group, state in list(plane.groups.items()):
        for key, sender in list(state.senders.items()):
            yield Audit(Decision(sender.admitted, sender.rule, ""), gate.host(key), group, Role.SENDER, None)


def _of_member(gate: Gate, member: Member) -> Iterator[Audit]:
    """Yield the decision about each source that a member asks for, or about all of them."""
    sources = sorted(member.sources) if member.mode is FilterMode.INCLUDE else [None]
    for source in sources:
        yield Audit(gate.said(member.host, member.group, source), member.host, member.group, Role.RECEIVER, source)
