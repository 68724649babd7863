"""Settings of alarms, and the fabric that the operator expects."""

from __future__ import annotations

from dataclasses import dataclass

from controller.config.declarations import SettingType, integer, number, other, section
from controller.config.terms import SEVERITIES, SwitchLink, SwitchPort


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where each alarm is posted as JSON when it is raised and when it is cleared; without a URL nowhere."""

    url: str = other(SettingType.TEXT, "", "Address that takes the POST: `https://...` or `http://...`.")
    token_file: str = other(
        SettingType.TEXT, "", "File with the word that is sent as `Authorization: Bearer`; none where absent."
    )
    ca_file: str = other(
        SettingType.TEXT, "", "Certificates (PEM) that the receiver's is checked by; the system's where absent."
    )
    timeout_s: float = number(5, 0.1, 60, "s", "Time within which each step of a post must be done.")
    attempts: int = integer(8, 1, 100, "posts", "How often a document is tried, with pauses of 1, 2, 4 to 60 s.")
    least: str = other(SettingType.CHOICE, "warning", "The least severity that is posted.", SEVERITIES)


@dataclass(frozen=True, slots=True)
class Alarms:
    """When something counts as an alarm, and who is told."""

    settle_s: float = number(
        1, 0, 60, "s", "Time that something must last to be an alarm, in which causes and consequences come together."
    )
    start_grace_s: float = number(
        20, 0, 3600, "s", "Time after a start in which switches and links that are missing are no alarm yet."
    )
    webhook: Webhook = section(Webhook)  # noqa: RUF009 - it makes a field


@dataclass(frozen=True, slots=True)
class ExpectedTopology:
    """The fabric as it shall be; what of it is missing is an alarm. Where absent, it is what was seen so far.

    Once read, `switches` and `links` hold those of `file` too.
    """

    file: str = other(
        SettingType.TEXT,
        "",
        "Topology file with switches and links that shall be there; its path is relative to the policy file's.",
    )
    switches: frozenset[int] = other(
        SettingType.SWITCHES, frozenset[int](), "Datapath ids of the switches that shall be there."
    )
    links: frozenset[SwitchLink] = other(
        SettingType.LINKS, frozenset[SwitchLink](), "Links that shall be there, by both ends; their switches too."
    )
    ports: frozenset[SwitchPort] = other(
        SettingType.PORTS, frozenset[SwitchPort](), "Ports to hosts or routers that shall be up."
    )

    def all_switches(self) -> frozenset[int]:
        """Return the switches named, by themselves or as the end of a link or the place of a port."""
        ends = {end.dpid for link in self.links for end in link}
        return self.switches | ends | {port.dpid for port in self.ports}
