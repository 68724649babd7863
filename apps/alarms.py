"""The alarms app: what is wrong with fabric and controller now; multicast loads it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from apps.actions import answer_of, logged
from apps.alarm_reports import AlarmReports
from apps.alarm_state import AlarmDatabase
from apps.exporters.exposition import Metric
from apps.exporters.figures import alarm_figures
from apps.openflow.app import FabricApp
from apps.openflow.bus import AlarmReported, SwitchForgotten
from apps.openflow.framework import set_ev_cls
from apps.policy_file import PolicyFile
from apps.state_dir import ActionLog, own_state_dir, socket_path
from apps.status_server import Refused, StatusServer
from apps.webhook import WebhookPoster
from controller.alarms.actions import FIELDS, FORGET_SWITCH, read_action
from controller.alarms.core import AlarmCore
from controller.alarms.effects import AlarmTurned
from controller.alarms.events import AlarmsChanged, AlarmsRead
from controller.config.alarm_settings import Webhook
from controller.effects import ActionRefused, ActionTaken
from controller.multicast.actions import ActionInvalid
from controller.snapshot.events import Severity, State
from controller.snapshot.log import Document

_REQUIRED_APP = ["apps.discovery"]

SAVED_AT_ONCE = 1000
"""Records written in one tick, so that the loop is soon free again."""

RETRY_S = 10.0
WEBHOOK_FAILED = "webhook-failed"


class Alarms(FabricApp):
    """Feeds the alarms' core with what switches, discovery and other apps tell, and keeps its state.

    It tells and changes nothing.
    """

    _EVENTS: ClassVar[list[type]] = [SwitchForgotten]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.policy_file = PolicyFile(self.logger)
        policy, now = self.policy_file.load(), time.monotonic()
        self.core: AlarmCore = AlarmCore(policy.alarms, policy.topology, now, time.time())
        self.record(now, settings=policy.alarms, topology=policy.topology, at_s=time.time())
        directory = own_state_dir()
        self.state = AlarmDatabase(directory / "alarms.sqlite", self.logger)
        self.actions = ActionLog(directory / "actions.jsonl", self.logger)
        self._save_from_s = 0.0
        self._outcomes: list[ActionTaken | ActionRefused] = []
        self.webhook = WebhookPoster(policy.alarms.webhook, self.logger)
        self._own = AlarmReports("alarms", self.feed)
        self._perform[ActionTaken] = self._perform[ActionRefused] = self._outcomes.append
        self._perform[AlarmTurned] = self._turned
        sections = self.core.sections
        sections.names.configure(policy.switches)
        self.server = StatusServer(
            socket_path(),
            {"alarms": self._document},
            self.ask,
            self.logger,
            {name: partial(self._act, name) for name in FIELDS},
            app="alarms",
            sections=sections.by_name(),
            refresh=sections.refresh,
        )

    def start(self) -> Any:
        """Serve the status socket, then run."""
        self.server.start()
        self.webhook.start()
        return super().start()

    def begin(self) -> None:
        """Take over what was wrong before, and which fabric was there."""
        self.feed(AlarmsRead(self.state.read()))

    def end(self) -> None:
        """Leave everything on disk."""
        while self._save():
            pass
        self.state.close()
        self.actions.flush()

    def stop(self) -> None:
        """Answer no more, then end."""
        self.server.stop()
        super().stop()
        self.webhook.stop()

    def ticked(self) -> None:
        """Follow the policy file, and keep the state and the log of actions."""
        self.actions.flush()
        before = self.policy_file.read_count
        policy = self.policy_file.poll()
        if policy is not None:
            self.core.sections.names.configure(policy.switches)
            self.core.sections.renamed()
            self.feed(AlarmsChanged(policy.alarms, policy.topology))
            self._use_webhook(policy.alarms.webhook)
        if self.policy_file.read_count > before:
            self._policy_read()
        self._look_at_webhook()
        if time.monotonic() >= self._save_from_s:
            self._save()

    def _packet_received(self, _event: Any) -> None:
        """Packets are of no concern here: without its handler the framework does not bring them."""

    def described(self, dpid: int, description: str) -> None:
        """Call the switch what it calls itself, where the policy has no name for it."""
        sections = self.core.sections
        if sections.names.described(dpid, description):
            sections.renamed()

    @set_ev_cls(AlarmReported)
    def _alarm_reported(self, event: Any) -> None:
        self.feed(event.report)

    def figures(self) -> list[Metric]:
        """Return what Prometheus is told: alarms and links."""
        return [*super().figures(), *alarm_figures(self.core)]

    def _turned(self, effect: AlarmTurned) -> None:
        document = effect.document
        raised = effect.state is State.RAISED
        log = self.logger.warning if raised and document["severity"] != Severity.INFO else self.logger.info
        if document["kind"] != WEBHOOK_FAILED:
            self.webhook.put(document)
        log("alarm %s %s: %s", document["key"], effect.state.value, document["text"])

    def _use_webhook(self, settings: Webhook) -> None:
        if settings != self.webhook.settings:
            self.webhook.stop()
            self.webhook = WebhookPoster(settings, self.logger)
            self.webhook.start()

    def _look_at_webhook(self) -> None:
        fault = self.webhook.fault
        if fault is None:
            self._own.over(WEBHOOK_FAILED, "webhook")
        else:
            text = f"Alarms are not told to {self.webhook.settings.url}: {fault}."
            self._own.holds(WEBHOOK_FAILED, "webhook", Severity.WARNING, text)

    def _policy_read(self) -> None:
        errors = self.policy_file.errors
        if errors:
            text = f"The policy file is faulty, and the policy of before stays in force: {errors[0]}"
            self._own.holds("policy-faulty", "policy", Severity.CRITICAL, text)
        else:
            self._own.over("policy-faulty", "policy")

    def _save(self) -> bool:
        """Keep some of what changed; return whether more is left that can be kept."""
        records = self.core.kept.take(SAVED_AT_ONCE)
        if self.state.write(records):
            self._own.over("state-lost", "alarms")
            return len(records) == SAVED_AT_ONCE
        self.core.kept.touch_all()
        self._save_from_s = time.monotonic() + RETRY_S
        text = f"{self.state.path} cannot be written: a restart will not know the alarms and the fabric of now."
        self._own.holds("state-lost", "alarms", Severity.WARNING, text)
        return False

    def _act(self, name: str, asked: Mapping[str, Any]) -> Document:
        document = logged(self.actions, name, asked, partial(self._do, name))
        self._save()
        if name == FORGET_SWITCH:
            self.send_event_to_observers(SwitchForgotten(document["dpid"]))
        return document

    def _do(self, name: str, fields: Mapping[str, Any], by: str | None) -> Document:
        try:
            self.feed(read_action(name, fields, by))
        except ActionInvalid as error:
            raise Refused(str(error), error.field) from None
        return answer_of(self._outcomes.pop())

    def _document(self) -> Document:
        sections = self.core.sections
        sections.refresh()
        webhook = {
            "posted": self.webhook.posted_count,
            "failed": self.webhook.failed_count,
            "dropped": self.webhook.dropped_count,
            "fault": self.webhook.fault,
        }
        return {**sections.whole(), "state": self.state.document(), "webhook": webhook}
