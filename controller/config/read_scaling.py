"""The section `scaling`: what must hold between its settings, and with monitors that share the switches."""

from __future__ import annotations

from controller.config.cluster_settings import NO_ENGINE, Cluster
from controller.config.document import Node
from controller.config.read import NodeReader, line_of
from controller.config.scaling_settings import APPLY, OFF, ScalingSettings
from controller.config.settings import Monitor

MAX_WORDS = 64
"""Words of a command."""


def read_scaling(reader: NodeReader, node: Node, path: str) -> ScalingSettings:
    """Return the settings, with a fault for each that does not go with the others."""
    settings = reader.settings(ScalingSettings, node, path)

    def fault(name: str, message: str) -> None:
        reader.faults.error(line_of(node, name), f"{path}.{name}", message)

    if settings.least > settings.limit:
        fault("least", f"{settings.least} is above the limit, {settings.limit} monitors")
    if len(settings.command) > MAX_WORDS:
        fault("command", f"{len(settings.command)} words; at most {MAX_WORDS} are supported")
    if settings.command and settings.mode != APPLY:
        reader.faults.warn(
            line_of(node, "command"), f"{path}.command", f"nothing runs it while mode is {settings.mode}"
        )
    return settings


def check_shares(
    reader: NodeReader,
    found: dict[str, tuple[int, Node]],
    monitor: Monitor | None,
    cluster: Cluster | None,
    scaling: ScalingSettings | None,
) -> None:
    """Record what monitors lack that are to share the switches, or to be advised how many they should be."""
    shares = monitor is not None and monitor.share != NO_ENGINE
    if shares and (cluster or Cluster()).engine == NO_ENGINE:
        line = line_of(found["monitor"][1], "share")
        reader.faults.error(line, "cluster.engine", "missing, while monitor.share is cluster")
    if scaling is not None and scaling.mode != OFF and not shares:
        line = line_of(found["scaling"][1], "mode")
        message = f"missing, while scaling.mode is {scaling.mode}: it is about monitors that share the switches"
        reader.faults.error(line, "monitor.share", message)
