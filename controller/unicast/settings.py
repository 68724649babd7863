"""The timers and bounds of the unicast core."""

from __future__ import annotations

from typing import NamedTuple

from controller.config.edit_settings import Edits
from controller.config.marking import Marking, marking_of
from controller.config.policy import LinkAggregation, Policy
from controller.config.vlans import Vlans


class UnicastSettings(NamedTuple):
    """Times in seconds; rates and bursts are the bounds on what one port, or all together, can cause.

    `settle_s` is how long changes of the topology are gathered before routes follow. After a restart the entries
    found on switches stay for `restart_grace_s`, until the hosts that they serve are known again. Every
    switch's entries are read once in `check_interval_s`; `edits` says how many a switch is sent at once. `vlans`
    says which VLANs ports to hosts are in, `link_aggregations` which of them lead to one host together, and `marking`
    which code points packets get. `large_flows` is how many flows and aliases together may have ways of their own, 0
    where no flow may.
    """

    settle_s: float = 0.002
    restart_grace_s: float = 30.0
    ask_timeout_s: float = 3.0
    asks: int = 4096
    asks_per_port: int = 512
    search_interval_s: float = 1.0
    searches: int = 4096
    question_burst_count: int = 100
    question_rate_per_s: float = 50.0
    relay_burst_count: int = 200
    relay_rate_per_s: float = 50.0
    relay_total_burst_count: int = 5000
    relay_total_rate_per_s: float = 2500.0
    miss_burst_count: int = 200
    miss_rate_per_s: float = 100.0
    guard_s: int = 1
    controller_mac: bytes = b"\x02VSRT\x00"
    check_interval_s: float = 60.0
    edits: Edits = Edits()
    vlans: Vlans = Vlans()
    link_aggregations: tuple[LinkAggregation, ...] = ()
    marking: Marking = Marking()
    large_flows: int = 0


class UnicastChanged(NamedTuple):
    """The operator wants other settings from here on."""

    settings: UnicastSettings


def of_policy(policy: Policy) -> UnicastSettings:
    """Return the settings that a policy wants."""
    return UnicastSettings(
        check_interval_s=policy.check.interval_s,
        edits=policy.edits,
        vlans=policy.vlans,
        link_aggregations=policy.link_aggregations,
        marking=marking_of(policy),
        large_flows=policy.aliases.pool if policy.aliases.has_flows else 0,
    )
