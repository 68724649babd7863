"""Which anomalies are told: the two ends of a cable as one fault, and in which order to look at several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from controller.anomaly.live_events import WHOLE_SWITCH, AnomalyTurned, MemberKey, OpenAnomaly
from controller.anomaly.live_members import member_name
from controller.snapshot.events import State


class FaultReporter:
    """Tells of open anomalies, each fault once.

    What is wrong with a cable, or with what goes by it, shows at both of its ends. The end that is to be looked at
    first is told and names the other one; a fault of a component is told even so, where the end told before has none.
    A switch that only carries more or less than its peers is told with the port where that is seen. What was told
    already stays told.

    Attributes
    ----------
    told
        The anomalies that were raised and not cleared since, by member, as they were last.
    """

    def __init__(self) -> None:
        self.told: dict[MemberKey, OpenAnomaly] = {}

    def settle(
        self, opened: dict[MemberKey, OpenAnomaly], far: Mapping[MemberKey, MemberKey], at_s: float
    ) -> list[AnomalyTurned]:
        """Return what is to be told at the end of a window, and note in `opened` which anomalies are the same fault.

        `far` has the other end of each cable; `at_s` is in epoch seconds.
        """
        part_of: dict[MemberKey, MemberKey] = {}
        for key in in_order(opened):
            other = far.get(key)
            if other is not None and other in opened and other not in part_of and self._is_part(key, other, opened):
                part_of[key] = other
        other_end = {main: part for part, main in part_of.items()}
        for key in in_order(opened):
            if key[1] != WHOLE_SWITCH and key not in part_of:
                for switch in ((end[0], WHOLE_SWITCH) for end in (key, other_end.get(key)) if end is not None):
                    if switch in opened and switch not in self.told and not _is_component(opened[switch]):
                        part_of.setdefault(switch, key)
        for key, anomaly in opened.items():
            opened[key] = anomaly._replace(part_of=_name(part_of.get(key)), other_end=_name(other_end.get(key)))
        before, self.told = self.told, {key: found for key, found in opened.items() if key not in part_of}
        gone = sorted(before.keys() - self.told.keys())
        cleared = [AnomalyTurned(State.CLEARED, before[key], at_s) for key in gone]
        raised = [AnomalyTurned(State.RAISED, self.told[key], at_s) for key in self.told if key not in before]
        return cleared + raised

    def _is_part(self, key: MemberKey, other: MemberKey, opened: Mapping[MemberKey, OpenAnomaly]) -> bool:
        """Tell whether an end of a cable is told with the other one."""
        was_told, other_told = key in self.told, other in self.told
        if was_told:
            return False
        if other_told:
            return not (_is_component(opened[key]) and not _is_component(opened[other]))
        return _order(opened[other]) < _order(opened[key])


def in_order(opened: Mapping[MemberKey, OpenAnomaly]) -> Iterable[MemberKey]:
    """Return members by what to look at first.

    Faults of components come first; then who fell silent, before those who may have taken over its traffic; then who
    differs most.
    """
    return sorted(opened, key=lambda key: _order(opened[key]))


def _order(anomaly: OpenAnomaly) -> tuple[bool, bool, float, MemberKey]:
    return not _is_component(anomaly), not anomaly.is_silent, -anomaly.score, anomaly.key


def _is_component(anomaly: OpenAnomaly) -> bool:
    return anomaly.verdict == "component fault"


def _name(key: MemberKey | None) -> str:
    return "" if key is None else member_name(key)
