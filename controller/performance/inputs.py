"""What the performance core is told."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from controller.events import Port
from controller.performance.batch import Samples
from controller.performance.core_settings import CoreSettings
from topology.graph import NodeKind


class MonitoredSwitchUp(NamedTuple):
    """A switch is connected, and these are its ports; those it had before and has no more are gone.

    Where `kind` is None its class is what it was.
    """

    dpid: int
    ports: tuple[Port, ...]
    kind: NodeKind | None = None


class MonitoredSwitchDown(NamedTuple):
    """The connection to a switch is gone: nothing is known of its ports until it is back, but they are not down."""

    dpid: int


class SwitchLeft(NamedTuple):
    """Another monitor polls a switch from now on: its ports' next samples are the first."""

    dpid: int


class SwitchClassified(NamedTuple):
    """Of which class a switch is."""

    dpid: int
    kind: NodeKind


class PortUp(NamedTuple):
    """A port was created, or created again: its counters begin anew."""

    dpid: int
    port: Port


class MonitoredPortChanged(NamedTuple):
    """Speed, name or link of a port may have changed; `port.up` tells of the link."""

    dpid: int
    port: Port


class PortDown(NamedTuple):
    """A port was deleted."""

    dpid: int
    port_no: int


class SamplesReceived(NamedTuple):
    """Counters of ports of any switches; rows below 0 are passed over and counted."""

    samples: Samples


class SettingsChanged(NamedTuple):
    """Go on with other settings."""

    settings: CoreSettings


class Tick(NamedTuple):
    """Time passed: closes roll-ups whose time is over and conditions that nothing is heard of any more."""


Input: TypeAlias = (
    MonitoredSwitchUp
    | MonitoredSwitchDown
    | SwitchLeft
    | SwitchClassified
    | PortUp
    | MonitoredPortChanged
    | PortDown
    | SamplesReceived
    | SettingsChanged
    | Tick
)
