"""What monitors that share the switches keep in the store: who they are, who divides, who polls which switch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from controller.cluster.engine import KeyValue
from controller.cluster.keys import Keys, read_object
from controller.cluster.view import KeyView

_Record = TypeVar("_Record", bound=NamedTuple)


class Load(NamedTuple):
    """What a switch has its monitor do: ports, and the time between two polls of it in seconds."""

    ports: int
    interval_s: int

    @property
    def ports_per_s(self) -> float:
        """Ports polled in a second; a switch without ports counts as one with one."""
        return max(self.ports, 1) / self.interval_s


class MonitorRecord(NamedTuple):
    """A monitor.

    Attributes
    ----------
    incarnation
        A text that no other run of a monitor has.
    metrics
        Where its metrics are scraped, ``HOST:PORT``; '' for nowhere.
    switches
        Those it is connected to, and what each would have it do.
    epoch
        The highest epoch of a share that it knew of when it came.
    """

    incarnation: str
    metrics: str
    switches: Mapping[int, Load]
    epoch: int

    def text(self) -> str:
        """Return this as a key's value."""
        switches = {f"{dpid:x}": list(load) for dpid, load in sorted(self.switches.items())}
        return json.dumps(self._replace(switches=switches)._asdict(), separators=(",", ":"))  # type: ignore[arg-type]


class Manager(NamedTuple):
    """Who divides the switches."""

    monitor: str
    incarnation: str

    def text(self) -> str:
        """Return this as a key's value."""
        return json.dumps(self._asdict())


class Share(NamedTuple):
    """Who polls a switch.

    Attributes
    ----------
    owner, incarnation
        The monitor, and which run of it.
    epoch
        Rises with each owner.
    former
        The run that had it before and has not yet said that it polls no more; '' where none is waited for.
    due_in_s
        How soon after it was given to its owner it is to be polled: 0 where it had nobody.
    """

    owner: str
    incarnation: str
    epoch: int
    former: str
    due_in_s: float

    def text(self) -> str:
        """Return this as a key's value."""
        return json.dumps(self._asdict())


def read_monitor(text: str) -> MonitorRecord | None:
    """Return what the key of a monitor says; None where it makes no sense."""
    try:
        found = read_object(text)
        switches = {int(dpid, 16): Load(int(ports), int(s)) for dpid, (ports, s) in found["switches"].items()}
        monitor = MonitorRecord(str(found["incarnation"]), str(found["metrics"]), switches, int(found["epoch"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    makes_sense = all(dpid >= 0 and load.ports >= 0 and load.interval_s > 0 for dpid, load in switches.items())
    return monitor if makes_sense else None


def read_manager(text: str) -> Manager | None:
    """Return what the key `manager` says; None where it makes no sense."""
    try:
        found = read_object(text)
        return Manager(str(found["monitor"]), str(found["incarnation"]))
    except (ValueError, KeyError, TypeError):
        return None


def read_share(text: str) -> Share | None:
    """Return what the key of a share says; None where it makes no sense."""
    try:
        found = read_object(text)
        owner, incarnation, former = (str(found[name]) for name in ("owner", "incarnation", "former"))
        return Share(owner, incarnation, int(found["epoch"]), former, float(found["due_in_s"]))
    except (ValueError, KeyError, TypeError):
        return None


class ShareView(KeyView):
    """The keys below `monitors` of a fabric."""

    def __init__(self, keys: Keys) -> None:
        super().__init__()
        self._keys = keys
        self._parsed: dict[str, tuple[str, Any]] = {}
        self._found: dict[str, tuple[int, dict[str, Any]]] = {}
        self._shares: tuple[int, dict[int, Share]] = (-1, {})

    @property
    def manager(self) -> Manager | None:
        """Who divides."""
        held = self.held(self._keys.manager)
        return None if held is None else read_manager(held.value)

    def monitors(self) -> dict[str, MonitorRecord]:
        """Return the monitors that are there, by name."""
        return self._read(self._keys.monitors, read_monitor)

    def shares(self) -> dict[int, Share]:
        """Return the shares, by datapath id."""
        version, shares = self._shares
        if version != self.version:
            found = self._read(self._keys.shares, read_share)
            shares = {int(name, 16): share for name, share in found.items() if is_dpid(name)}
            self._shares = (self.version, shares)
        return shares

    def drained(self) -> frozenset[str]:
        """Return the monitors that are to be left without switches: those whose run that is there was drained."""
        runs = self._read(self._keys.drained, str)
        return frozenset(name for name, each in self.monitors().items() if runs.get(name) == each.incarnation)

    def unowned(self) -> set[int]:
        """Return the switches that a monitor is connected to, and that none polls."""
        monitors = self.monitors().values()
        there = {monitor.incarnation for monitor in monitors}
        connected = {dpid for monitor in monitors for dpid in monitor.switches}
        return connected - {dpid for dpid, share in self.shares().items() if share.incarnation in there}

    def _read(self, prefix: str, read: Any) -> dict[str, Any]:
        version, found = self._found.get(prefix, (-1, {}))
        if version != self.version:
            values = ((held.key.removeprefix(prefix), self._value(held, read)) for held in self.below(prefix))
            found = {name: value for name, value in values if value is not None}
            self._found[prefix] = (self.version, found)
            self._parsed = {key: parsed for key, parsed in self._parsed.items() if self.held(key) is not None}
        return found

    def _value(self, held: KeyValue, read: Any) -> Any:
        """Return what a key says, read once for each value: a store that was emptied counts revisions anew."""
        text, value = self._parsed.get(held.key, (None, None))
        if text != held.value:
            value = read(held.value)
            self._parsed[held.key] = (held.value, value)
        return value


def is_dpid(text: str) -> bool:
    """Tell whether a text is a datapath id as keys have them: 16 lower-case hexadecimal digits."""
    return len(text) == 16 and not set(text) - set("0123456789abcdef")
