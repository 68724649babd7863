"""Whether this controller goes by the same policy as the one that leads, which says so in the store."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

from controller.cluster.effects import Told
from controller.cluster.engine import Reply
from controller.config.cluster_settings import Cluster
from controller.config.policy import Policy
from controller.config.settings import Dashboard
from controller.recording import plain
from controller.snapshot.events import Severity, State


def policy_digest(policy: Policy) -> str:
    """Return what tells policies apart, without what each machine has for itself: its store, page and outputs."""
    common = replace(policy, cluster=Cluster(), dashboard=Dashboard(), monitor=Policy().monitor)
    return hashlib.sha256(json.dumps(plain(common), sort_keys=True).encode()).hexdigest()


class PolicyWatch:
    """Compares digests, and tells when policies begin or cease to differ."""

    def __init__(self) -> None:
        self.differs = False

    def compare(self, own: str, reply: Reply, key: str) -> Told | None:
        """Take what the store says; return what operators are to be told."""
        held = next((held for held in getattr(reply, "held", ()) if held.key == key), None)
        if held is None or (held.value != own) == self.differs:
            return None
        self.differs = not self.differs
        if self.differs:
            text = "This controller goes by another policy than the one that leads: a take-over would change it."
            return Told("policy-differs", text, Severity.WARNING, State.RAISED)
        text = "The policy of this controller is that of the one that leads again."
        return Told("policy-differs", text, Severity.INFO, State.CLEARED)
