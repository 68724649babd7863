"""Labels that operators give switches and ports, beside those of the policy, until they take them back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from controller.config.labels import MAX_LABELS
from controller.log import LogEntry, LogEntryKind
from controller.multicast.callbacks import Perform, PolicyInForce
from controller.multicast.change_feed import ChangeFeed
from controller.multicast.events import LabelSet
from controller.multicast.operator_answers import SettingRefused, answer_operator
from controller.multicast.operator_settings import SETTINGS_BOUND, OperatorLabel
from controller.multicast.pending_writes import PendingWrites
from controller.multicast.switches import Switches

LABEL = "label"
"""What the keys of the log begin with that are about labels."""


class OperatorLabels:
    """The labels that operators gave; one stands for the policy's of the same key until it is taken back."""

    def __init__(
        self,
        policy: PolicyInForce,
        switches: Switches,
        pending_writes: PendingWrites,
        feed: ChangeFeed,
        perform: Perform,
    ) -> None:
        self._policy = policy
        self._switches = switches
        self._pending_writes = pending_writes
        self._feed = feed
        self._perform = perform
        self._labels: dict[tuple[int, int, str], str] = {}
        self.handlers: dict[type, Callable[[Any, float], None]] = {LabelSet: self._handle}

    def by_operator(self) -> Iterator[OperatorLabel]:
        """Yield the labels that operators gave."""
        for (dpid, port_no, key), value in list(self._labels.items()):
            yield OperatorLabel(dpid, port_no, key, value)

    def restore(self, label: OperatorLabel) -> None:
        """Take over a label that the log has."""
        self._give(label[:3], label.value)

    def forget(self, label: OperatorLabel) -> None:
        """Take it that the log has a label no more."""
        self._give(label[:3], None)

    # The log

    def keys(self) -> Iterator[str]:
        """Yield what the log calls the labels."""
        for dpid, port_no, key in self._labels:
            yield f"{LABEL}/{dpid}/{port_no}/{key}"

    def entry(self, log_key: str) -> LogEntry:
        """Return what the log is told of a label."""
        _, dpid, port_no, key = log_key.split("/")
        where = (int(dpid), int(port_no), key)
        value = self._labels.get(where)
        label = None if value is None else OperatorLabel(*where, value)._asdict()
        return LogEntry.of_record(LogEntryKind.DECISION, log_key, label)

    # What operators ask

    def _handle(self, event: LabelSet, now: float) -> None:
        act = partial(self._add if event.value is not None else self._remove, event, now)
        answer_operator(self._feed.names, self._perform, act)

    def _add(self, event: LabelSet, now: float) -> dict[str, Any]:
        dpid, port_no, key, value = event
        self._check_place(dpid, port_no)
        own = self._feed.names.operators_labels(dpid, port_no or None)
        if key not in own and len(own) >= MAX_LABELS:
            raise SettingRefused("key", f"operators gave {_what(event)} {MAX_LABELS} labels, as many as one may have")
        if key not in own and len(self._labels) >= SETTINGS_BOUND:
            raise SettingRefused("key", f"operators gave {SETTINGS_BOUND} labels, as many as are kept")
        self._give((dpid, port_no, key), value)
        self._tell(event, f"An operator gives {_what(event)} the label {key}={value}.", now)
        return self._document(event)

    def _remove(self, event: LabelSet, now: float) -> dict[str, Any]:
        dpid, port_no, key, _ = event
        of_policy = self._feed.names.policys_labels(dpid, port_no or None).get(key)
        if (dpid, port_no, key) not in self._labels:
            if of_policy is not None:
                text = f"{_what(event)} has {key}={of_policy} by the policy file: take it out there, and reload"
                raise SettingRefused("key", text)
            raise SettingRefused("key", f"{_what(event)} has no label {key}")
        self._give((dpid, port_no, key), None)
        then = "" if of_policy is None else f": it is {key}={of_policy} by the policy file"
        self._tell(event, f"An operator takes the label {key} back from {_what(event)}{then}.", now)
        return self._document(event)

    def _check_place(self, dpid: int, port_no: int) -> None:
        switches = self._switches
        is_here = dpid in switches.connected
        if not is_here and dpid not in switches.gone and dpid not in self._policy().known_switches():
            raise SettingRefused("dpid", f"there is no switch {dpid}")
        if is_here and port_no and port_no not in switches.ports(dpid):
            raise SettingRefused("port_no", f"switch {dpid} has no port {port_no}")

    def _document(self, event: LabelSet) -> dict[str, Any]:
        place: Mapping[str, int] = {"dpid": event.dpid} | ({"port_no": event.port_no} if event.port_no else {})
        return {**place, "labels": dict(self._feed.names.labels(event.dpid, event.port_no or None))}

    def _give(self, where: tuple[int, int, str], value: str | None) -> None:
        dpid, port_no, key = where
        if value is None:
            self._labels.pop(where, None)
        else:
            self._labels[where] = value
        self._feed.names.label_given(dpid, port_no or None, key, value)
        if port_no:
            self._feed.ports.touch((dpid, port_no))
        else:
            self._feed.switches.touch(dpid)

    def _tell(self, event: LabelSet, text: str, now: float) -> None:
        dpid, port_no, key, _ = event
        self._pending_writes.record_changed(f"{LABEL}/{dpid}/{port_no}/{key}", now)
        self._feed.events.add(now, "label", text, dpid=dpid, port_no=port_no or None)


def _what(event: LabelSet) -> str:
    return f"port {event.dpid}:{event.port_no}" if event.port_no else f"switch {event.dpid}"
