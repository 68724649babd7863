"""Who may be a multicast router or the querier: a rule about the host decides, else the settings of its port."""

from __future__ import annotations

from controller.membership.events import AdmitRouter, HostRef, MembershipEffect, RouterJudged, RouterVerdict
from controller.membership.limits import MembershipTally
from controller.membership.settings import MembershipSettings, PortKey, applies
from controller.membership.tables import MemberPort
from controller.wire.addresses import format_ip, format_mac

LEARN = "multicast.router_ports.learn"
ACCEPT = "multicast.querier.accept_others"
PROXY = "multicast.proxy.router_ports"


class RouterAdmission:
    """Judges those who send queries and PIM hellos, and tells of refusals once per port and interval.

    `admit` is what the policy's rules say; where they say nothing the settings of the port decide.
    """

    def __init__(self, settings: MembershipSettings, admit: AdmitRouter, tally: MembershipTally) -> None:
        self.settings = settings
        self._admit = admit
        self._tally = tally

    def as_router(self, host: HostRef) -> RouterVerdict:
        """Decide whether a host makes its port a router port, and of which groups."""
        return self._admit(host) or self._by_setting(host, LEARN, self.settings.learn_router_ports)

    def as_querier(self, host: HostRef) -> RouterVerdict:
        """Decide whether a host may be the querier; one that may have some groups only is none."""
        if applies(self.settings.proxied_router_ports, (host.dpid, host.port_no)):
            return RouterVerdict(False, PROXY, "the controller asks the hosts, and answers the routers at this port")
        verdict = self._admit(host) or self._by_setting(host, ACCEPT, self.settings.accept_queriers)
        if verdict.admit and verdict.groups is not None:
            reason = "it may have some groups only, and a querier asks about every group"
            return verdict._replace(admit=False, reason=reason)
        return verdict

    def refuse(
        self,
        port: MemberPort,
        host: HostRef,
        speech: str,
        verdict: RouterVerdict,
        now: float,
        effects: list[MembershipEffect],
    ) -> None:
        """Count a refused query or PIM hello, and tell of it unless that was just done at this port."""
        text = (
            f"receives the {speech} of {format_ip(host.ip)} ({format_mac(host.mac)}), which is ignored "
            f"and reaches nobody: {verdict.reason}"
        )
        kind = "query-refused" if speech.endswith("query") else "pim-hello-refused"
        if self._tally.warn(port, kind, text, now, effects):
            effects.append(RouterJudged(host, verdict))

    @staticmethod
    def _by_setting(host: HostRef, name: str, setting: bool | frozenset[PortKey]) -> RouterVerdict:
        if applies(setting, (host.dpid, host.port_no)):
            return RouterVerdict(True, name, "the setting names the port")
        reason = f"a rule with role router about this host, or {name} with this port, would allow it"
        return RouterVerdict(False, "default", reason)
