"""A monitor that shares the switches with others: what it tells the store's thread, and what it is told."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from apps.monitor_scaling import MonitorScaling
from apps.state_dir import ActionLog
from apps.tls_files import SettingsInvalid
from controller.config.policy import Policy
from controller.config.scaling_settings import OFF, ScalingSettings
from controller.performance.shared_polls import (
    PollsStopped,
    SharesConfirmed,
    SharesLeft,
    SharesTaken,
    SwitchesHeld,
)

if TYPE_CHECKING:
    import logging

    from apps.cluster.scaling_thread import Busyness, ScalingHeard, ScalingThread
    from apps.exporters.sink import ScalingState
    from controller.cluster.shares import ShareFigures
    from controller.snapshot.log import DocumentLog


class MonitorShare:
    """The monitor's end of what divides the switches.

    `feed` has the monitor's core take an event, `hear` is told what is advised about the number of monitors, and
    `busyness` returns how busy this one was; any thread may call them. ValueError where the settings cannot be.
    """

    def __init__(
        self,
        policy: Policy,
        feed: Callable[[Any], object],
        logger: logging.Logger,
        busyness: Callable[[], Busyness],
        hear: Callable[[ScalingHeard], object],
    ) -> None:
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
        place = mine.monitor, mine.incarnation, mine.fabric
        self.scaling = MonitorScaling()
        self._advised = partial(self._advice, place, busyness, hear, logger)
        self._scaling = self._advised(policy.scaling) if policy.scaling.mode != OFF else None

    def _advice(
        self,
        place: tuple[str, str, str],
        busyness: Callable[[], Busyness],
        hear: Callable[[ScalingHeard], object],
        logger: logging.Logger,
        settings: ScalingSettings,
    ) -> ScalingThread:
        """Return what takes part in advice."""
        from apps.cluster.monitor_orders import carry_out
        from apps.cluster.scaling_orders import ScalingOrders
        from apps.cluster.scaling_thread import ScalingPlace, ScalingThread
        from controller.cluster.keys import Keys

        seen = self._thread
        orders = ScalingOrders(
            partial(carry_out, self.ask, Keys(self.fabric)), lambda: seen.monitors.states, settings.command
        )
        return ScalingThread(
            *(settings, ScalingPlace(*place), self.ask, lambda: seen.monitors), *(busyness, orders, hear, logger)
        )

    def start(self) -> None:
        """Take part."""
        self._thread.start()
        if self._scaling is not None:
            self._scaling.start()

    def configure(self, settings: ScalingSettings) -> None:
        """Have other settings of advice, from the end of the interval on."""
        if self._scaling is not None:
            self._scaling.configure(settings)
        elif settings.mode != OFF:
            self._scaling = self._advised(settings)
            self._scaling.start()

    @property
    def advice(self) -> ScalingState | None:
        """What outputs tell of advice; None where this monitor takes no part in it."""
        return None if self._scaling is None else self.scaling.state()

    def close(self) -> None:
        """Give the lease back, and end."""
        if self._scaling is not None:
            self._scaling.close()
        self._thread.close()

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

    def sections(self) -> dict[str, DocumentLog[Any]]:
        """Return what readers follow, by name."""
        return {"monitors": self.section, "scaling": self.scaling.section}

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
