"""A monitor that shares the switches with others: what it tells the store's thread, and what it is told."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from apps.state_dir import ActionLog
from apps.tls_files import SettingsInvalid
from controller.config.policy import Policy
from controller.performance.shared_polls import (
    PollsStopped,
    SharesConfirmed,
    SharesLeft,
    SharesTaken,
    SwitchesHeld,
)

if TYPE_CHECKING:
    import logging

    from controller.cluster.shares import ShareFigures


class MonitorShare:
    """The monitor's end of what divides the switches.

    `feed` has the monitor's core take an event; any thread may call it. ValueError where the settings cannot be.
    """

    def __init__(self, policy: Policy, feed: Callable[[Any], object], logger: logging.Logger) -> None:
        # Loaded here: a monitor that polls all switches needs nothing of what several share.
        from apps.cluster.metric_targets import PATH, MetricTargets
        from apps.cluster.monitors_shown import MonitorsSection
        from apps.cluster.settings import metrics_address, sidecar_settings
        from apps.cluster.share_thread import ShareThread
        from apps.cluster.sidecar_settings import access
        from controller.cluster.shares import ShareSettings

        try:
            settings = sidecar_settings(policy.cluster, secrets.token_hex(8))
            reached = access(settings)
            metrics = metrics_address(policy.monitor)
        except SettingsInvalid as error:
            raise ValueError(str(error)) from error
        member = settings.member
        self.name, self.fabric = member.member, member.fabric
        mine = ShareSettings(
            *(member.fabric, member.member, member.incarnation, metrics), member.lease_s, first_epoch=int(time.time())
        )
        self._feed = feed
        self._thread = ShareThread(mine, reached, self._told, logger)
        self._shown = MonitorsSection()
        self.section = self._shown.section
        self.ask = self._thread.ask
        self.pages = {PATH: MetricTargets(self.ask, self.fabric).page}
        self.start = self._thread.start
        self.close = self._thread.close

    @property
    def figures(self) -> ShareFigures:
        """What is told of shares."""
        return self._thread.figures

    def orders(
        self, later: Callable[[Callable[[], None]], object], log: ActionLog
    ) -> dict[str, Callable[[Mapping[str, Any]], Any]]:
        """Return what operators can ask for: `later` has work done on the app's loop, `log` keeps what was asked."""
        from apps.cluster.monitor_orders import MonitorOrders

        return {**MonitorOrders(self.ask, self.fabric, later, log).actions()}

    def refresh(self) -> None:
        """Have readers of `section` told what is otherwise."""
        monitors = self._thread.monitors
        self._shown.see(monitors.states, monitors.unowned, time.time())

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
