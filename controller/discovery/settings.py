"""The timers and bounds of discovery."""

from __future__ import annotations

from typing import NamedTuple

from controller.config.edit_settings import Edits
from controller.config.policy import LinkAggregation, Policy
from controller.config.vlans import Vlans


class DiscoverySettings(NamedTuple):
    """Times in seconds; every count bounds a table that a switch or host can grow.

    `probe_offsets_s` are the LLDP frames after a port came up, `edge_after_s` the time after which a port that
    answered none of them leads to hosts; a port waits for switches that have just connected, but no longer than
    `edge_latest_s`. `link_capacity_bps`, where not 0, stands for the speed of all ports. A frame that does
    not arrive is followed by `missed_count` others at a fast pace; where they are missed too, the link is down. A
    switch whose connection ended counts as there for `switch_grace_s`, as long as it forwards and a link leads to it.
    Every switch's entries are read once in `check_interval_s`; `edits` says how many a switch is sent at once. LLDP,
    echo, segment and tour frames together leave at `frames_per_s` at most, in the long run, and at
    `idle_frames_per_s` too where no port is new or suspect. `vlans` says which VLANs ports to hosts let in,
    `link_aggregations` which of them lead to one host together.
    """

    lldp_interval_s: float = 2.0
    missed_count: int = 3
    frames_per_s: float = 2000.0
    idle_frames_per_s: float = 500.0
    link_capacity_bps: float = 0.0
    probe_offsets_s: tuple[float, ...] = (0.0, 0.05, 0.15, 0.3)
    edge_after_s: float = 0.4
    edge_latest_s: float = 2.0
    base_rules_latest_s: float = 1.0
    switch_grace_s: float = 10.0
    flap_burst_count: int = 20
    flap_refill_per_s: float = 1.0
    host_timeout_s: float = 300.0
    host_probe_count: int = 3
    host_probe_interval_s: float = 1.0
    challenge_s: float = 1.0
    challenge_probe_offsets_s: tuple[float, ...] = (0.0, 0.3, 0.6)
    challenge_quiet_s: float = 0.1
    challenge_hold_s: float = 10.0
    hosts_per_port: int = 64
    addresses_per_host: int = 16
    early_per_port: int = 16
    challenges: int = 1024
    challenges_per_port: int = 16
    remembered_hosts: int = 65536
    guard_burst_count: int = 300
    guard_refill_per_s: float = 150.0
    guard_s: int = 1
    controller_mac: bytes = b"\x02VSRT\x00"
    probe_ipv4: bytes = bytes(4)
    check_interval_s: float = 60.0
    edits: Edits = Edits()
    vlans: Vlans = Vlans()
    link_aggregations: tuple[LinkAggregation, ...] = ()

    def legs(self) -> frozenset[tuple[int, int]]:
        """Return the ports that lead to hosts by the policy: no time is spent on finding out."""
        return frozenset((port.dpid, port.port_no) for group in self.link_aggregations for port in group.ports)

    def waiting_legs(self) -> frozenset[tuple[int, int]]:
        """Return those that lead to hosts as soon as LACP, or the host itself, says so."""
        groups = (group for group in self.link_aggregations if group.mode != "static")
        return frozenset((port.dpid, port.port_no) for group in groups for port in group.ports)

    def problem(self) -> str | None:
        """Return what is wrong with the values, None where nothing is."""
        for name in (
            *("lldp_interval_s", "frames_per_s", "idle_frames_per_s"),
            *("flap_refill_per_s", "guard_refill_per_s", "host_probe_interval_s"),
        ):
            if not getattr(self, name) > 0:
                return f"{name} is not positive"
        for name in ("missed_count", "flap_burst_count", "hosts_per_port", "addresses_per_host"):
            if getattr(self, name) < 1:
                return f"{name} is below 1"
        if not self.switch_grace_s >= 0:
            return "switch_grace_s is negative"
        if not self.probe_offsets_s or list(self.probe_offsets_s) != sorted(self.probe_offsets_s):
            return "probe_offsets_s is empty or not ascending"
        if not self.probe_offsets_s[-1] < self.edge_after_s <= self.edge_latest_s:
            return "edge_after_s is not between the last of probe_offsets_s and edge_latest_s"
        if self.host_timeout_s <= 2 * self.host_probe_count * self.host_probe_interval_s:
            return "host_timeout_s leaves no time for the probes"
        return None


class DiscoveryChanged(NamedTuple):
    """The operator wants other settings from here on."""

    settings: DiscoverySettings


class SecretGiven(NamedTuple):
    """The controllers of the fabric have this key for their LLDP frames; told before the first switch connects."""

    secret: bytes


def of_policy(policy: Policy) -> DiscoverySettings:
    """Return the settings that a policy wants."""
    return DiscoverySettings(
        lldp_interval_s=policy.discovery.lldp_interval_s,
        missed_count=policy.discovery.missed_count,
        frames_per_s=policy.discovery.frames_per_s,
        idle_frames_per_s=policy.discovery.idle_frames_per_s,
        switch_grace_s=policy.discovery.switch_grace_s,
        link_capacity_bps=policy.discovery.link_capacity_bps,
        host_timeout_s=policy.unicast.host_timeout_s,
        hosts_per_port=policy.limits.hosts_per_port,
        addresses_per_host=policy.limits.addresses_per_host,
        check_interval_s=policy.check.interval_s,
        edits=policy.edits,
        vlans=policy.vlans,
        link_aggregations=policy.link_aggregations,
    )
