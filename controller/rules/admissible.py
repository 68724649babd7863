"""Which changes switches can be told of: an origin with an entry that a version cannot say is refused whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from controller.effects import Define, Edit, Put, Undefine
from controller.rules.model import Entry, FlowEntry, FlowKey, Key, ResourceKey, is_own, resources_of
from controller.rules.notices import Notices
from controller.rules.switch_state import OwnerState, edit_key, edit_value

Origin: TypeAlias = int | tuple[int, ResourceKey]
"""What is refused as a whole: the cookie of flow entries, or a switch and a group or meter there."""

_Final: TypeAlias = dict[tuple[int, Key], Entry | None]


class Admissible:
    """Judges the changes of the app whose tag is `app_tag` by what `switches` can hold."""

    def __init__(
        self, app_tag: int, switches: Mapping[int, OwnerState], notices: Notices, *, keeps_resources: bool = False
    ) -> None:
        self._app_tag = app_tag
        self._keeps_resources = keeps_resources
        self._switches = switches
        self._notices = notices

    def refused(self, stages: Sequence[Sequence[tuple[int, Edit]]], now: float) -> set[Origin]:
        """Return the origins that a switch concerned cannot be told of: nothing of them is changed.

        ValueError for a rule with another app's tag, or with a timeout; for a group or meter that is not the app's,
        or is given up while an entry shall name it.
        """
        refused: set[Origin] = set()
        if self._keeps_resources:
            self._judge_resources(stages, refused, now)
        for stage in stages:
            for dpid, edit in stage:
                if type(edit) is not Put:
                    if not self._keeps_resources and isinstance(edit, Define | Undefine):
                        raise ValueError(f"{edit} is of an app that keeps no groups and meters")
                    continue
                rule: FlowEntry = edit[0]
                if rule[2] >> 48 != self._app_tag or rule[3] or rule[4]:
                    raise ValueError(f"{rule} has a timeout or another app's tag")
                state = self._switches.get(dpid)
                if state is not None and state.lowering is not None:
                    reason = state.lowering.expressible(rule)
                    if reason is not None:
                        refused.add(rule.cookie)
                        self.refuse(dpid, rule, reason, now)
        return refused

    def _judge_resources(
        self, stages: Sequence[Sequence[tuple[int, Edit]]], refused: set[Origin], now: float
    ) -> None:
        """Refuse groups and meters that a switch cannot have, and the entries that name what is not to be there."""
        final: _Final = {}
        for stage in stages:
            for dpid, edit in stage:
                if isinstance(edit, Define | Undefine):
                    self._judge_resource(dpid, edit, refused, now)
                    if isinstance(edit, Define) and (dpid, edit.resource.key) in refused:
                        continue
                final[dpid, edit_key(edit)] = edit_value(edit)
        for (dpid, key), value in final.items():
            state = self._switches.get(dpid)
            if isinstance(value, FlowEntry):
                for resource in self._own_named_by(value):
                    there = final[dpid, resource] if (dpid, resource) in final else self._desired(dpid, resource)
                    if there is None:
                        refused.add(value.cookie)
                        self.refuse(dpid, value, f"{resource.kind} {resource[0]} is not to be there", now)
            elif value is None and not isinstance(key, FlowKey) and state is not None and state.resources is not None:
                for namer in state.resources.desired.of(key):
                    after = final.get((dpid, namer), state.desired[namer])
                    if key in self._own_named_by(after):
                        raise ValueError(f"{key} is given up at switch {dpid} while {namer} shall name it")

    def _judge_resource(self, dpid: int, edit: Define | Undefine, refused: set[Origin], now: float) -> None:
        key = edit.key if isinstance(edit, Undefine) else edit.resource.key
        if not is_own(key, self._app_tag):
            raise ValueError(f"{key} is another app's")
        state = self._switches.get(dpid)
        if isinstance(edit, Define) and state is not None and state.lowering is not None:
            reason = state.lowering.problem(edit.resource)
            if reason is not None:
                refused.add((dpid, key))
                self.refuse(dpid, edit.resource, reason, now)

    def _own_named_by(self, entry: Entry | None) -> list[ResourceKey]:
        return [resource for resource in resources_of(entry) if is_own(resource, self._app_tag)]

    def _desired(self, dpid: int, key: Key) -> Entry | None:
        state = self._switches.get(dpid)
        return None if state is None else state.desired.get(key)

    def refuse(self, dpid: int, entry: Entry, reason: str, now: float) -> None:
        """Tell that a switch cannot hold an entry."""
        what = "the flow entry" if isinstance(entry, FlowEntry) else f"the {entry.key.kind}"
        text = f"Switch {dpid} cannot hold {what} {entry}: {reason}."
        self._notices.give("rule-refused", dpid, text, now, rule=entry, reason=reason)


def origin_of(state: OwnerState, edit: Edit) -> Origin | None:
    """Return the origin of what an edit is about, None where nothing is desired there."""
    if isinstance(edit, Put):
        return edit.rule.cookie
    if isinstance(edit, Define):
        return state.dpid, edit.resource.key
    entry = state.desired.get(edit.key)
    return entry.cookie if isinstance(entry, FlowEntry) else None
