"""Which changes switches can be told of: an origin with an entry that a version cannot say is refused whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from controller.effects import Edit, Put
from controller.rules.model import Rule
from controller.rules.notices import Notices
from controller.rules.switch_state import SwitchState


class Admissible:
    """Judges the changes of the app whose tag is `app_tag` by what `switches` can hold."""

    def __init__(self, app_tag: int, switches: Mapping[int, SwitchState], notices: Notices) -> None:
        self._app_tag = app_tag
        self._switches = switches
        self._notices = notices

    def refused(self, stages: Sequence[Sequence[tuple[int, Edit]]], now: float) -> set[int]:
        """Return the origins that a switch concerned cannot be told of: nothing of them is changed.

        ValueError for a rule with another app's tag, or with a timeout.
        """
        refused: set[int] = set()
        for stage in stages:
            for dpid, edit in stage:
                if type(edit) is not Put:
                    continue
                rule: Rule = edit[0]
                if rule[2] >> 48 != self._app_tag or rule[3] or rule[4]:
                    raise ValueError(f"{rule} has a timeout or another app's tag")
                state = self._switches.get(dpid)
                if state is not None and state.lowering is not None:
                    reason = state.lowering.expressible(rule)
                    if reason is not None:
                        refused.add(rule.cookie)
                        self.refuse(dpid, rule, reason, now)
        return refused

    def refuse(self, dpid: int, rule: Rule, reason: str, now: float) -> None:
        """Tell that a switch cannot hold an entry."""
        text = f"Switch {dpid} cannot hold the flow entry {rule}: {reason}."
        self._notices.give("rule-refused", dpid, text, now, rule=rule, reason=reason)


def origin_of(state: SwitchState, edit: Edit) -> int | None:
    """Return the origin of what an edit is about, None where nothing is desired there."""
    if isinstance(edit, Put):
        return edit.rule.cookie
    rule = state.desired.get(edit.key)
    return None if rule is None else rule.cookie
