"""What an app does with what the controllers of a fabric share, by whether this one follows or leads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from apps.cluster.lead import Followed, Lead


class LeadFollower:
    """An app without anything of its own in the logs that controllers share."""

    def take_lead(self, lead: Lead, then: Callable[[], None]) -> None:
        """Know what the controller left that led before, and call `then`; on the loop, before the first switch."""
        then()

    def follow_logs(self, followed: Followed) -> None:
        """Take in what the controller that leads has in its logs, to be as far as it is; on the loop."""

    def write_log_anew(self) -> None:
        """Have all that the log has of this app written once more; on the loop."""

    def log_lag_s(self, now: float) -> float:
        """Return for how long the app has been behind with the log that it writes or follows; on the loop."""
        return 0.0

    def renew_lead(self, lead: Lead) -> None:
        """Go on leading where the store has lost all, and have what is known kept as `lead` says; on the loop."""
