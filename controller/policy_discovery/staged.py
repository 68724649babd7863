"""A staged policy: judged beside the one in force, and never applied."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from controller.admission import Admission, Decision, HostLike, Role
from controller.config.policy import Policy
from controller.kernel.domains import address_of, domain_of
from controller.wire.addresses import format_ip, format_mac

OTHER_DECISIONS = ("(", "limits.", "vlans.", "multicast.")
"""How the names begin under which other things than a policy's rules decide: they say nothing of who may."""

OTHERWISE_BOUND = 1024
"""Hosts, roles, groups and sources that are told one by one; those beyond are counted."""

LOOK_BACK_S = 86400.0
"""Time after which a decision that was not repeated is told no more."""


class StagedKey(NamedTuple):
    """A host, by its MAC address, a role, a group of a domain, and the source that was asked for, else ``b""``."""

    mac: bytes
    role: Role
    group: bytes
    source: bytes


class StagedDecisions:
    """Which decisions a staged policy would make otherwise; nothing while there is none."""

    def __init__(self) -> None:
        self._admission: Admission | None = None
        self._otherwise: dict[StagedKey, dict[str, Any]] = {}
        self.alike = 0
        self.beyond = 0

    def use(self, policy: Policy | None) -> list[StagedKey]:
        """Judge by another policy from now on; return what is told no more."""
        gone = list(self._otherwise)
        self._admission = None if policy is None else Admission(policy)
        self._otherwise.clear()
        self.alike = self.beyond = 0
        return gone

    def judge(
        self,
        made: Decision,
        host: HostLike,
        group: bytes | None,
        role: Role,
        source: bytes | None,
        now_s: float,
        *,
        counts: bool = True,
    ) -> StagedKey | None:
        """Take a decision of the policy in force, at `now_s` in epoch seconds; return what is told otherwise now.

        One that does not count was taken before, and still holds.
        """
        if self._admission is None or group is None or role is Role.ROUTER or made.rule.startswith(OTHER_DECISIONS):
            return None
        staged = self._admission.explain(host, address_of(group), role, source, domain_of(group))
        key = StagedKey(host.mac, role, group, source or b"")
        if staged.admit == made.admit:
            self.alike += counts
            return key if self._otherwise.pop(key, None) is not None else None
        known = self._otherwise.get(key)
        if known is None and len(self._otherwise) >= OTHERWISE_BOUND:
            self.beyond += counts
            return None
        self._otherwise[key] = {
            "would_be": "admitted" if staged.admit else "refused",
            "role": str(role),
            "group": format_ip(group),
            "source": None if source is None else format_ip(source),
            "mac": format_mac(host.mac),
            "ip": None if host.ip is None else format_ip(host.ip),
            "dpid": host.dpid,
            "port_no": host.port_no,
            "rule": made.rule,
            "staged_rule": staged.rule,
            "reason": staged.reason,
            "count": 1 if known is None else known["count"] + counts,
            "first_s": now_s if known is None else known["first_s"],
            "last_s": now_s,
        }
        return key

    def forget(self, now_s: float) -> list[StagedKey]:
        """Tell no more of what was not decided again for a day; return what that is."""
        old = [key for key, told in self._otherwise.items() if told["last_s"] <= now_s - LOOK_BACK_S]
        for key in old:
            del self._otherwise[key]
        return old

    def counts(self) -> dict[str, int]:
        """Return how many decisions would be otherwise, by what they would be, and how many were alike."""
        told = Counter(told["would_be"] for told in self._otherwise.values())
        return {"refused": told["refused"], "admitted": told["admitted"], "beyond": self.beyond, "alike": self.alike}

    def otherwise(self) -> list[StagedKey]:
        """Return what would be decided otherwise."""
        return sorted(self._otherwise)

    def document(self, key: StagedKey) -> dict[str, Any] | None:
        """Return what would be decided otherwise of a key; None where nothing would."""
        return self._otherwise.get(key)
