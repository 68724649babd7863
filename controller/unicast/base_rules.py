"""The entries of the unicast core that name no host: what goes to the controller, and what is kept from it.

A packet to an unknown host and an IPv4 broadcast go to the controller. An entry per port drops both for a while when
a port sends too many of them; entries for known hosts come before it.
"""

from __future__ import annotations

from controller.rules.cookies import cookie_of
from controller.rules.model import OFPP_CONTROLLER, Action, Match, Output, Rule, RuleKey
from controller.rules.pipeline import (
    ETH_TYPE_IPV4,
    ETH_TYPE_IPV6,
    OPENFLOW_1_0,
    PRIORITY_UNTAGGED_MISS,
    UNICAST,
    UNICAST_TAG,
)
from controller.wire.addresses import BROADCAST_MAC

_PRIORITY_UNKNOWN = PRIORITY_UNTAGGED_MISS + 1
_PRIORITY_BROADCAST = PRIORITY_UNTAGGED_MISS + 2
_PRIORITY_GUARD = PRIORITY_UNTAGGED_MISS + 3

_TO_CONTROLLER: tuple[Action, ...] = (Output(OFPP_CONTROLLER),)


def base_rules(ofp_version: int) -> list[Rule]:
    """Return the entries for a switch that speaks OpenFlow 1.0 (1) or 1.3 (4); IPv6 is for 1.3 only."""
    unknown = [Match(eth_type=ETH_TYPE_IPV4)]
    if ofp_version != OPENFLOW_1_0:
        unknown.append(Match(eth_type=ETH_TYPE_IPV6))
    broadcast = Match(eth_dst=BROADCAST_MAC, eth_type=ETH_TYPE_IPV4)
    return [
        *(_rule(ofp_version, _PRIORITY_UNKNOWN, match, _TO_CONTROLLER) for match in unknown),
        _rule(ofp_version, _PRIORITY_BROADCAST, broadcast, _TO_CONTROLLER),
    ]


def guard_rule(ofp_version: int, port_no: int, seconds: int) -> Rule:
    """Return the entry that keeps what `base_rules` sends to the controller away from it, for one port, a while."""
    return _rule(ofp_version, _PRIORITY_GUARD, Match(in_port=port_no), ())._replace(hard_timeout_s=seconds)


def _rule(ofp_version: int, priority: int, match: Match, actions: tuple[Action, ...]) -> Rule:
    table = 0 if ofp_version == OPENFLOW_1_0 else UNICAST
    return Rule(RuleKey(table, priority, match), actions, cookie_of(UNICAST_TAG, ("base", priority)))
