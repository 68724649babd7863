"""The alarms app: what is wrong with fabric and controller now; multicast loads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from apps.actions import answer_of, logged
from apps.alarm_reports import STATE_LOST
from apps.alarm_state import AlarmDatabase
from apps.exporters.exposition import Metric
from apps.exporters.figures import alarm_figures
from apps.openflow.bus import AlarmReported, SwitchForgotten
from apps.openflow.declared import DeclaredApp
from apps.openflow.fabric_app import FabricApp
from apps.openflow.framework import SOUTHBOUND, set_ev_cls
from apps.policy_file import PolicyReading, shares_fabric
from apps.registry import required_modules
from apps.saved_state import SavedState
from apps.state_dir import ActionLog, own_state_dir
from apps.status_server import QuestionRefused
from apps.webhook import WebhookPoster
from controller.alarms.actions import FIELDS, FORGET_SWITCH, read_action
from controller.alarms.core import AlarmCore
from controller.alarms.effects import AlarmTurned
from controller.alarms.events import AlarmsRead
from controller.alarms.kept import KeptRecord
from controller.config.alarm_settings import Webhook
from controller.effects import ActionRefused, ActionTaken
from controller.events import SwitchDescription
from controller.multicast.actions import ActionInvalid
from controller.snapshot.events import Severity, State
from controller.snapshot.log import Document
from controller.snapshot.names import Names

_REQUIRED_APP = required_modules("alarms")

SAVED_AT_ONCE = 500
"""Records written in one tick, so that the loop is soon free again."""

WEBHOOK_FAILED = "webhook-failed"


class AlarmsApp(DeclaredApp, FabricApp):
    """Feeds the alarms' core with what switches, discovery and other apps tell, and keeps its state.

    It tells and changes nothing.
    """

    _EVENTS: ClassVar[list[type]] = [SwitchForgotten]

    core: AlarmCore
    actions: ActionLog
    saved: SavedState

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._follows = False
        super().__init__(*args, **kwargs)
        self._follows = shares_fabric(self.policy_file.reading.policy)
        self.state = AlarmDatabase(own_state_dir() / "alarms.sqlite", self.logger)
        self.saved = SavedState(
            self.state, self._changes, self.core.kept.touch_all, self._tell_of_state, SAVED_AT_ONCE
        )
        self.log_actions()
        self._outcomes: list[ActionTaken | ActionRefused] = []
        self.webhook = WebhookPoster(self.policy_file.reading.policy.alarms.webhook, self.logger)
        self._perform[ActionTaken] = self._perform[ActionRefused] = self._outcomes.append
        self._perform[AlarmTurned] = self._turned
        sections = self.core.sections
        self.offer(
            {"alarms": self._document},
            {name: partial(self._act, name) for name in FIELDS},
            sections.by_name(),
            sections.refresh,
        )

    def names_of_core(self) -> Names:
        """Return the names that the alarms' texts have."""
        return self.core.sections.names

    def start(self) -> Any:
        """Post alarms, then run."""
        self.webhook.start()
        return super().start()

    def begin(self) -> None:
        """Take over what was wrong before, and which fabric was there."""
        if not self._follows:
            self.feed(AlarmsRead(self.state.read()))

    def take_lead(self, _lead: Any, then: Callable[[], None]) -> None:
        """Look after the fabric from here on: another controller did before."""
        self._follows = False
        self.begin()
        then()

    def is_shut_out(self, datapath: Any) -> bool:
        """Tell whether another controller leads, or may lead still: what is wrong with the fabric is its business."""
        return SOUTHBOUND.gate is not None and SOUTHBOUND.gate.is_shut(datapath)

    def feed(self, event: Any) -> None:
        """Give the core an event, unless another controller looks after the fabric."""
        if self.takes_events:
            super().feed(event)

    @property
    def takes_events(self) -> bool:  # type: ignore[override]
        """Whether the core is given anything: not while another controller looks after the fabric."""
        return not self._follows

    @property
    def deadline_s(self) -> float | None:
        """When `due` is to be called."""
        return self._tick_s if self._follows else super().deadline_s

    def stop(self) -> None:
        """End, and post no more."""
        super().stop()
        self.webhook.stop()

    def ticked(self) -> None:
        """Look after files, and how alarms are posted."""
        super().ticked()
        self._look_at_webhook()

    def report(self, report: Any) -> None:
        """Take what is wrong with this app itself as what others report."""
        self.feed(report)

    def described(self, dpid: int, description: SwitchDescription) -> None:
        """Call the switch what it calls itself, where the policy has no name for it."""
        sections = self.core.sections
        if sections.names.described(dpid, description.datapath):
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
            self._reports.over(WEBHOOK_FAILED, "webhook")
        else:
            text = f"Alarms are not told to {self.webhook.settings.url}: {fault}."
            self._reports.holds(WEBHOOK_FAILED, "webhook", Severity.WARNING, text)

    def policy_was_read(self, reading: PolicyReading) -> None:
        """Go by another policy, and report a file that is faulty."""
        super().policy_was_read(reading)
        if reading.errors:
            text = f"The policy file is faulty, and the policy of before stays in force: {reading.errors[0]}"
            self._reports.holds("policy-faulty", "policy", Severity.CRITICAL, text)
        else:
            self.core.sections.renamed()
            self._use_webhook(reading.policy.alarms.webhook)
            self._reports.over("policy-faulty", "policy")

    def _changes(self, record_count: int) -> tuple[list[KeptRecord], bool]:
        records = self.core.kept.take(record_count)
        return records, len(records) == record_count

    def _tell_of_state(self, trouble: str | None) -> None:
        text = trouble and f"{trouble}: a restart will not know the alarms and the fabric of now."
        self._reports.look_at(STATE_LOST, "alarms", text)

    def _act(self, name: str, asked: Mapping[str, Any]) -> Document:
        document = logged(self.actions, name, asked, partial(self._do, name))
        self.saved.save()
        if name == FORGET_SWITCH:
            self.send_event_to_observers(SwitchForgotten(document["dpid"]))
        return document

    def _do(self, name: str, fields: Mapping[str, Any], by: str | None) -> Document:
        refused = SOUTHBOUND.gate.refusal() if self._follows and SOUTHBOUND.gate is not None else None
        if refused is not None:
            raise refused
        try:
            self.feed(read_action(name, fields, by))
        except ActionInvalid as error:
            raise QuestionRefused(str(error), error.field) from None
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
