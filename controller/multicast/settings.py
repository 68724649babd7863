"""From the policy in force to the settings of what goes by it."""

from __future__ import annotations

from collections.abc import Mapping

from controller.config.policy import Policy
from controller.kernel.aggregations import aggregations_of
from controller.membership.settings import MembershipLimits, MembershipSettings
from controller.trees.forest import Forest
from topology.aggregations import Place
from topology.graph import Graph


class LoadedPolicy:
    """The policy in force, which a reload replaces."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def __call__(self) -> Policy:
        """Return the policy."""
        return self.policy


def forest_of(policy: Policy, graph: Graph) -> Forest:
    """Return a forest of trees as a policy wants them."""
    multicast = policy.multicast
    return Forest(graph, multicast.tree, multicast.seed, multicast.default_rate_bps)


def membership_settings(policy: Policy) -> MembershipSettings:
    """Return the querier, leave and router port settings of a policy."""
    multicast, querier = policy.multicast, policy.multicast.querier
    homes = aggregations_of(policy.link_aggregations).homes
    return MembershipSettings(
        robustness=querier.robustness,
        query_interval_s=querier.query_interval_s,
        response_interval_s=querier.response_interval_s,
        last_member_interval_s=querier.last_member_interval_s,
        last_member_count=querier.last_member_count,
        startup_interval_s=querier.startup_interval_s,
        startup_count=querier.startup_count,
        igmp_version=querier.igmp_version,
        mld_version=querier.mld_version,
        querier=querier.enabled,
        query_address_v4=querier.address_v4,
        query_address_v6=querier.address_v6,
        accept_queriers=_ports(querier.accept_others, homes),
        fast_leave=_ports(multicast.fast_leave, homes),
        learn_router_ports=_ports(multicast.router_ports.learn, homes),
        static_router_ports=frozenset((port.dpid, port.port_no) for port in multicast.router_ports.static),
        router_ports_on_request=_ports(multicast.router_ports.on_request, homes),
        router_ports_on_join=_ports(multicast.router_ports.on_join, homes),
        pim_join_interval_s=multicast.router_ports.pim_join_interval_s,
        proxied_router_ports=_ports(multicast.proxy.router_ports, homes),
        enforce_ssm=multicast.enforce_ssm,
    )


def _ports(setting: object, homes: Mapping[Place, Place]) -> bool | frozenset[Place]:
    if isinstance(setting, bool):
        return setting
    ports = [(port.dpid, port.port_no) for port in setting]  # type: ignore[attr-defined]
    return frozenset(homes.get(port, port) for port in ports)


def membership_limits(policy: Policy) -> MembershipLimits:
    """Return the bounds of the membership tables of a policy."""
    limits = policy.limits
    per_host = limits.reports_per_second_per_host or limits.reports_per_second_per_port
    records_per_host = limits.records_per_second_per_host or limits.records_per_second_per_port
    return MembershipLimits(
        groups_per_port=limits.groups_per_port,
        groups_per_host=limits.groups_per_host or limits.groups_per_port,
        link_groups_per_port=limits.link_groups_per_port,
        hosts_per_port=limits.hosts_per_port,
        sources_per_group=limits.sources_per_group,
        states=limits.memberships,
        reports_per_second_per_port=limits.reports_per_second_per_port,
        report_burst=max(2 * limits.reports_per_second_per_port, 1.0),
        reports_per_second_per_host=per_host,
        host_report_burst=max(2 * per_host, 1.0),
        records_per_second_per_port=limits.records_per_second_per_port,
        record_burst=2 * limits.records_per_second_per_port,
        records_per_second_per_host=records_per_host,
        host_record_burst=2 * records_per_host,
        routers_per_port=limits.routers_per_port,
        joins_per_port=limits.joins_per_port,
    )
