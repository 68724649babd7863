"""A monitor that shares the switches with others: what it tells the store's thread, and what it is told."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from apps.tls_files import SettingsInvalid
from controller.config.policy import Policy
from controller.performance.shared_polls import (
    PollsStopped,
    SharesConfirmed,
    SharesLeft,
    SharesTaken,
    SwitchesHeld,
)
from controller.wire.addresses import format_ip

if TYPE_CHECKING:
    import logging

    from controller.cluster.shares import ShareFigures


class MonitorShare:
    """The monitor's end of what divides the switches.

    `feed` has the monitor's core take an event; any thread may call it. ValueError where the settings cannot be.
    """

    def __init__(self, policy: Policy, feed: Callable[[Any], object], logger: logging.Logger) -> None:
        # Loaded here: a monitor that polls all switches needs nothing of what several share.
        from apps.cluster.settings import sidecar_settings
        from apps.cluster.share_thread import ShareThread
        from apps.cluster.sidecar_settings import access
        from controller.cluster.shares import ShareSettings

        try:
            settings = sidecar_settings(policy.cluster, secrets.token_hex(8))
            reached = access(settings)
        except SettingsInvalid as error:
            raise ValueError(str(error)) from error
        member, prometheus = settings.member, policy.monitor.prometheus
        self.name = member.member
        metrics = f"{format_ip(prometheus.address)}:{prometheus.port}" if prometheus.enabled else ""
        mine = ShareSettings(
            *(member.fabric, member.member, member.incarnation, metrics), member.lease_s, first_epoch=int(time.time())
        )
        self._feed = feed
        self._thread = ShareThread(mine, reached, self._told, logger)
        self.start = self._thread.start
        self.close = self._thread.close

    @property
    def figures(self) -> ShareFigures:
        """What is told of shares."""
        return self._thread.figures

    def held(self, effect: SwitchesHeld) -> None:
        """Tell which switches are connected."""
        from controller.cluster.share_events import SwitchesSeen
        from controller.cluster.share_records import Load

        self._thread.say(SwitchesSeen({dpid: Load(ports, s) for dpid, ports, s in effect.switches}))

    def stopped(self, effect: PollsStopped) -> None:
        """Tell which switches are polled no more."""
        from controller.cluster.share_events import PollsEnded

        self._thread.say(PollsEnded(effect.due_in_s))

    def _told(self, effect: Any) -> None:
        """Have the core take what follows, on the store's thread."""
        from controller.cluster.share_events import ShareConfirmed

        if type(effect) is ShareConfirmed:
            self._feed(SharesConfirmed(effect.until_s))
            return
        if effect.left:
            self._feed(SharesLeft(effect.left))
        if effect.taken:
            self._feed(SharesTaken(tuple(map(tuple, effect.taken))))
