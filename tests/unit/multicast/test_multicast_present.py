"""What is decided of the members and senders that are there, without being decided again."""

from __future__ import annotations

from dataclasses import replace

from controller.admission import Role
from controller.config.load import load_policy
from controller.multicast.events import PolicyLoaded
from controller.multicast.present import present_decisions
from controller.wire.addresses import format_ip, parse_ip
from controller.wire.packets import RecordType

from .conftest import OPEN, leaf_spine

GROUP, OTHER = parse_ip("239.7.0.1"), parse_ip("239.7.0.2")
RULES = "version: 1\nrules:\n  - {name: never, groups: [239.7.0.2], role: receiver, hosts: any, action: deny}\n"


def decisions(world):
    found = present_decisions(world.core.gate, world.core.memberships, world.core.plane)
    return {
        (format_ip(audit.host.ip), format_ip(audit.group), audit.role, audit.source): (
            audit.decision.admit,
            audit.decision.rule,
        )
        for audit in found
    }


def test_members_and_senders_are_told_with_the_rules_that_decide_of_them(make_world, version):
    policy = replace(load_policy(RULES + "default: allow\n"), limits=OPEN.limits)
    world = make_world(leaf_spine(2, 2, 2), policy, version)
    world.join("h1", GROUP)
    world.join("h3", OTHER)
    world.settle()
    world.send("h4", GROUP)
    world.settle()
    counted = world.core.gate.admission.counters()
    ips = {name: format_ip(world.hosts[name].address(GROUP)) for name in ("h1", "h3", "h4")}
    assert decisions(world) == {
        (ips["h1"], "239.7.0.1", Role.RECEIVER, None): (True, "default"),
        (ips["h3"], "239.7.0.2", Role.RECEIVER, None): (False, "never"),
        (ips["h4"], "239.7.0.1", Role.SENDER, None): (True, "default"),
    }
    assert world.core.gate.admission.counters() == counted
    world.feed(PolicyLoaded(replace(policy, rules=(), default_allow=False)))
    world.settle()
    assert set(decisions(world).values()) == {(False, "default")}


def test_members_of_some_sources_are_told_by_each(make_world):
    world = make_world(leaf_spine(2, 2, 2), OPEN)
    sources = [parse_ip("10.0.0.9"), parse_ip("10.0.0.8")]
    world.record("h1", RecordType.ALLOW_NEW_SOURCES, GROUP, *sources)
    world.settle()
    assert {key[3] for key in decisions(world)} == set(sources)
