"""Groups and meters beside the flow entries that name them: which edits have to wait for which others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from controller.datapath.lanes import Urgency
from controller.effects import Define, Edit, Put, Undefine
from controller.rules.model import Entry, FlowKey, Key, ResourceKey, is_own, resources_of


class Namers:
    """Which of some entries name which groups and meters of the app with this tag."""

    __slots__ = ("_app_tag", "_named", "_namers")

    def __init__(self, app_tag: int) -> None:
        self._app_tag = app_tag
        self._named: dict[Key, tuple[ResourceKey, ...]] = {}
        self._namers: dict[ResourceKey, dict[Key, None]] = {}

    def enter(self, key: Key, entry: Entry | None) -> None:
        """Take in what a key has from here on."""
        for resource in self._named.pop(key, ()):
            namers = self._namers[resource]
            namers.pop(key, None)
            if not namers:
                del self._namers[resource]
        named = tuple([resource for resource in resources_of(entry) if is_own(resource, self._app_tag)])
        if named:
            self._named[key] = named
            for resource in named:
                self._namers.setdefault(resource, {})[key] = None

    def of(self, resource: ResourceKey) -> list[Key]:
        """Return the entries that name a group or meter."""
        return list(self._namers.get(resource, ()))

    def first(self, resource: ResourceKey) -> Key | None:
        """Return one of the entries that name a group or meter, None where there is none."""
        return next(iter(self._namers.get(resource, ())), None)

    def rebuild(self, entries: Mapping[Key, Entry]) -> None:
        """Take in all entries anew."""
        self._named.clear()
        self._namers.clear()
        for key, entry in entries.items():
            self.enter(key, entry)


class Resources:
    """What an app with groups and meters has to heed at a switch, in what is `desired` and what is `installed`.

    An entry is sent once the groups and meters that it names are confirmed as they shall be; these are deleted once
    no entry names them. `held` are the keys that wait, each for one other, with their urgency.
    """

    __slots__ = ("_app_tag", "_waiting", "desired", "held", "installed")

    def __init__(self, app_tag: int) -> None:
        self._app_tag = app_tag
        self.desired = Namers(app_tag)
        self.installed = Namers(app_tag)
        self.held: dict[Key, tuple[Key, Urgency]] = {}
        self._waiting: dict[Key, dict[Key, None]] = {}

    def obstacle(
        self, key: Key, value: Entry | None, installed: Mapping[Key, Entry], target: Callable[[Key], Entry | None]
    ) -> Key | None:
        """Return the key that has to be confirmed before `key` is given this value, None where there is none."""
        if not isinstance(key, FlowKey):
            return self.installed.first(key) if value is None else None
        for resource in self.named_by(value):
            there = installed.get(resource)
            if there is None or there != target(resource):
                return resource
        return None

    def named_by(self, entry: Entry | None) -> list[ResourceKey]:
        """Return the groups and meters of the app's own that an entry names."""
        return [resource for resource in resources_of(entry) if is_own(resource, self._app_tag)]

    def hold(self, key: Key, obstacle: Key, urgency: Urgency) -> None:
        """Have a key wait until another is confirmed; what was prompt stays so."""
        before = self.held.pop(key, None)
        if before is not None:
            self._forget(key, before[0])
            urgency = min(urgency, before[1])
        self.held[key] = (obstacle, urgency)
        self._waiting.setdefault(obstacle, {})[key] = None

    def release(self, key: Key) -> None:
        """Have a key wait no more."""
        before = self.held.pop(key, None)
        if before is not None:
            self._forget(key, before[0])

    def _forget(self, key: Key, obstacle: Key) -> None:
        waiting = self._waiting[obstacle]
        del waiting[key]
        if not waiting:
            del self._waiting[obstacle]

    def take_waiting(self, obstacle: Key) -> list[tuple[Key, Urgency]]:
        """Return, and have wait no more, the keys that waited for this one, with their urgencies."""
        return [(key, self.held.pop(key)[1]) for key in self._waiting.pop(obstacle, ())]

    def release_all(self) -> None:
        """Have nothing wait."""
        self.held.clear()
        self._waiting.clear()


def in_order(
    stages: Sequence[Sequence[tuple[int, Edit]]], namers: Callable[[int, ResourceKey], Iterable[Key]]
) -> list[list[tuple[int, Edit]]]:
    """Return stages of a plan in which what entries name comes no later than they do, and goes no sooner.

    Else a stage would wait for one that waits for it. What a plan both gives and takes keeps its stages. `namers`
    tells which entries of a switch name a group or meter before the plan.
    """
    ordered = [list(stage) for stage in stages]
    counts: dict[tuple[int, ResourceKey], int] = {}
    first_named: dict[tuple[int, ResourceKey], int] = {}
    last_edited: dict[tuple[int, Key], int] = {}
    for number, stage in enumerate(stages):
        for dpid, edit in stage:
            if isinstance(edit, Define | Undefine):
                key = edit.resource.key if isinstance(edit, Define) else edit.key
                counts[dpid, key] = counts.get((dpid, key), 0) + 1
            else:
                last_edited[dpid, edit.rule.key if isinstance(edit, Put) else edit.key] = number
                for resource in resources_of(edit.rule) if isinstance(edit, Put) else ():
                    first_named.setdefault((dpid, resource), number)
    for number, stage in enumerate(stages):
        for dpid, edit in stage:
            if isinstance(edit, Define) and counts[dpid, edit.resource.key] == 1:
                wanted = min(number, first_named.get((dpid, edit.resource.key), number))
            elif isinstance(edit, Undefine) and counts[dpid, edit.key] == 1:
                wanted = max([number, *(last_edited.get((dpid, key), 0) for key in namers(dpid, edit.key))])
            else:
                continue
            if wanted != number:
                ordered[number].remove((dpid, edit))
                ordered[wanted].append((dpid, edit))
    return ordered
