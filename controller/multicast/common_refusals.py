"""Switches that refuse entries which groups have in common: there each group goes on with entries of its own."""

from __future__ import annotations

from controller.effects import Effect, Notice, Remove
from controller.multicast.groups import GroupPlane
from controller.rules.installer import Installer
from controller.rules.model import FlowKey


class CommonRefusals:
    """Takes in what switches refuse, and has their groups do without it.

    Attributes
    ----------
    is_due
        Whether `on_deadline` has something to do.
    """

    def __init__(self, plane: GroupPlane, installer: Installer) -> None:
        self.is_due = False
        self._plane = plane
        self._installer = installer
        self._found: dict[int, dict[FlowKey, None]] = {}
        self._without: dict[int, dict[str, None]] = {}
        installer.refusals.found_unfit = self._found_unfit

    def _found_unfit(self, dpid: int, key: FlowKey) -> None:
        """Take it that a switch does not know how to match what an entry does."""
        without = self._plane.forms.refused(dpid, key)
        if without is not None:
            self._without.setdefault(dpid, {})[without] = None
            self.is_due = True
        if key.match.ip_dst is None and (dpid, key) in self._plane.shared:
            self._found.setdefault(dpid, {})[key] = None
            self.is_due = True

    def on_deadline(self, now: float) -> list[Effect]:
        """Give the groups at switches of which that is news other entries, and tell of it.

        What was refused and nobody uses any more is awaited no longer.
        """
        self.is_due = False
        effects: list[Effect] = []
        for dpid, names in self._without.items():
            for name in names:
                text = (
                    f"Switch {dpid} refuses what {name} need: its groups have entries of their own there from now "
                    f"until this controller ends."
                )
                effects.append(Notice("common-entry-refused", text, (("dpid", dpid), ("without", name))))
            effects += self._plane.recompile(dpid, now)
        self._without.clear()
        unused = [
            place for dpid, keys in self._found.items() for place in self._plane.shared.take_unused_at(dpid, keys)
        ]
        self._found.clear()
        if unused:
            effects += self._installer.change([[(dpid, Remove(key)) for dpid, key in unused]], now)
        return effects
