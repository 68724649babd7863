"""What only the multicast core asks of its shell."""

from __future__ import annotations

from typing import NamedTuple

from controller.admission.host import Decision, HostLike
from controller.config.policy import Role


class Audit(NamedTuple):
    """One admission decision, for the audit log.

    `source` is the source asked for, None for any; `group` None where a router was admitted or refused.
    """

    decision: Decision
    host: HostLike
    group: bytes | None
    role: Role
    source: bytes | None
