"""What fabrics are called, and what operators are told when links join them or one falls into parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from controller.config.policy import NamedFabric
from controller.effects import Notice
from topology.fabrics import Fabrics

TOLD_SWITCHES = 5
"""Switches that are named of a part that was cut off."""


class FabricNaming(NamedTuple):
    """What a fabric is called: `name` is its own, `others` are names of the policy that are idle."""

    name: str | None
    others: tuple[str, ...]


_UNNAMED = FabricNaming(None, ())


class FabricNames:
    """Names of fabrics by a policy, and what of their joins and splits was told.

    A name of the policy is of the fabric where the first of its switches is that is there; of several names of one
    fabric the first in the file counts. Where there is none the fabric goes by its lowest datapath id.
    """

    def __init__(self, fabrics: Fabrics, named: Sequence[NamedFabric]) -> None:
        self._fabrics = fabrics
        self._named = named
        self._names: dict[int, FabricNaming] = {}
        self._version = -1
        self._told: dict[int, str] = {}
        self._told_idle: set[tuple[str, str]] = set()

    def use(self, named: Sequence[NamedFabric]) -> None:
        """Go by the names of another policy."""
        self._named = named
        self._version = -1

    def called(self, dpid: int) -> FabricNaming:
        """Return what the fabric is called that has this lowest datapath id."""
        if self._version != self._fabrics.version:
            self._version = self._fabrics.version
            self._names = self._found()
        return self._names.get(dpid, _UNNAMED)

    def name_at(self, dpid: int) -> str | None:
        """Return the name of a switch's fabric, None where it has none."""
        fabric = self._fabrics.of(dpid)
        return None if fabric is None else self.called(fabric.dpid).name

    def idle_names(self) -> Iterable[tuple[str, str]]:
        """Yield each name of the policy that is idle, behind that of the same fabric that counts."""
        for fabric in self._fabrics:
            called = self.called(fabric.dpid)
            if called.name is not None:
                for other in called.others:
                    yield called.name, other

    def _found(self) -> dict[int, FabricNaming]:
        names: dict[int, FabricNaming] = {}
        for named in self._named:
            places = (self._fabrics.of(dpid) for dpid in named.switches)
            fabric = next((place for place in places if place is not None), None)
            if fabric is None:
                continue
            before = names.get(fabric.dpid)
            if before is None:
                names[fabric.dpid] = FabricNaming(named.name, ())
            else:
                names[fabric.dpid] = FabricNaming(before.name, (*before.others, named.name))
        return names

    # What is told

    def changes(self, is_starting: bool) -> list[Notice]:
        """Return what became of fabrics since the last time; joins are not told of while it `is_starting`."""
        notices: list[Notice] = []
        of: dict[int, str] = {}
        parts: dict[str, list[tuple[str, set[int]]]] = {}
        for fabric in self._fabrics:
            label = self._label(fabric.dpid)
            of.update(dict.fromkeys(fabric.switches, label))
            by_former: dict[str, set[int]] = {}
            for dpid in fabric.switches:
                if dpid in self._told:
                    by_former.setdefault(self._told[dpid], set()).add(dpid)
            for former, switches in by_former.items():
                parts.setdefault(former, []).append((label, switches))
            if len(by_former) > 1 and not is_starting:
                text = f"{_listed(sorted(by_former))} are one now, as a link joins them: it is {label}."
                notices.append(Notice("fabric-joined", _sentence(text), (("dpid", fabric.dpid),)))
        for former, found in sorted(parts.items()):
            found.sort(key=lambda part: (part[0] != former, -len(part[1]), min(part[1])))
            for label, switches in found[1:]:
                text = f"No link joins {_switches(switches)} to the rest of {former} any more: this is {label} now."
                notices.append(Notice("fabric-split", text, (("dpid", min(switches)),)))
        idle = set(self.idle_names())
        for name, other in sorted(idle - self._told_idle):
            text = f"The names {name} and {other} of the policy file are of one fabric: it is called {name}."
            notices.append(Notice("fabric-named-twice", text, ()))
        self._told, self._told_idle = of, idle
        return notices

    def _label(self, dpid: int) -> str:
        name = self.called(dpid).name
        return f"the fabric of switch {dpid}" if name is None else f"fabric {name}"


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def _switches(dpids: set[int]) -> str:
    """Say which switches are meant, the lowest by what they are called."""
    ordered = sorted(dpids)
    named = _listed([f"switch {dpid}" for dpid in ordered[:TOLD_SWITCHES]])
    more = len(ordered) - TOLD_SWITCHES
    return named if more <= 0 else f"{named} and {more} more"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
