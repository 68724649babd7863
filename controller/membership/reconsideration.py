"""Memberships judged by another policy, step by step; between steps anything may happen to the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from controller.membership.events import Admit, MembershipEffect
from controller.membership.members import HostMemberships
from controller.membership.tables import MemberPort


def judge_otherwise(
    members: HostMemberships, would_admit: Admit, is_concerned: Callable[[bytes], bool]
) -> Iterator[list[MembershipEffect]]:
    """Judge anew what the policy in force decides otherwise than before, a membership or a group at a step.

    Yields the effects of each step. `would_admit` says what admission would, and leaves no trace; groups that are not
    concerned are passed over.
    """
    for group in list(members.groups()):
        if not is_concerned(group):
            yield []
            continue
        for port in list(members.ports_of(group)):
            membership = port.groups.get(group)
            for state in [] if membership is None else list(membership.hosts.values()):
                effects: list[MembershipEffect] = []
                if state.membership.hosts.get(state.host.ref.mac) is state:
                    members.judge_otherwise(state, would_admit, effects)
                yield effects


def know_hosts_anew(members: HostMemberships, ports: Iterable[MemberPort]) -> Iterator[list[MembershipEffect]]:
    """Ask anew what admission makes of every host, one at a step, after all memberships were judged."""
    for port in ports:
        for host in [*port.hosts[4].values(), *port.hosts[6].values()]:
            members.identities.admission_changed(host)
            yield []


def tell_refused_anew(
    ports: Iterable[MemberPort], changed: Callable[[bytes], None]
) -> Iterator[list[MembershipEffect]]:
    """Tell of every group with a refused member, a port or a group of one at a step."""
    for port in ports:
        yield []
        for group in list(dict.fromkeys(state.membership.group for state in port.refused)):
            changed(group)
            yield []
