"""Documents of `vsrt classes`: what is read from them, with the place of every fault, and what is answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from controller.allocation.fields import (
    RequestError,
    boolean,
    items,
    mapping,
    names,
    number,
    record,
    text,
    whole,
    within,
)
from controller.service_classes.clusters import clusters
from controller.service_classes.goals import DISCRETIONARY, GOAL_BOUNDS, MOST_IMPORTANT, Goal, GoalKind
from controller.service_classes.pool import MAX_ALIASES
from controller.service_classes.rates import PortClass, queue_rates
from controller.service_classes.transfers import ClassState, GroupState, TransferDecision, TransferPass

_RATES = frozenset({"capacity_bps", "floor_pct", "classes"})
_PORT_CLASS = frozenset({"name", "importance", "offered_bps", "packet_bytes", "goal"})
_MOMENT = frozenset({"now_s", "free", "per_group", "last_goal_s", "last_efficiency_s", "last_helped_importance"})
_CLASS = frozenset({"name", "importance", "performance_index", "queue_share", "groups"})
_GROUP = frozenset({"importance", "trees", "queue", "utilisation", "gain", "enabled", "last_action_s"})
_OPTIONAL = frozenset(
    {"goal", "gain", "enabled", "last_goal_s", "last_efficiency_s", "last_helped_importance", "last_action_s"}
)

LEAST_PACKET_BYTES, MOST_PACKET_BYTES = 1, 65_535


class TransferInput(NamedTuple):
    """What `controller.service_classes.transfers.decide` is asked with."""

    moment: TransferPass
    classes: list[ClassState]
    groups: dict[str, GroupState]


def clusters_of(document: Any) -> dict[str, Any]:
    """Return the clusters of ``{samples: {class: {device: n}}}``.

    Raises
    ------
    RequestError
        The document is none; the text begins with the field at fault.
    """
    root = record(document, "input", frozenset({"samples"}), _OPTIONAL)
    samples = {
        name: {
            link: number(use, f"samples.{name}.{link}")
            for link, use in mapping(uses, f"samples.{name}", None).items()
        }
        for name, uses in mapping(root["samples"], "samples", None).items()
    }
    return {"clusters": clusters(samples)}


def rates_of(document: Any) -> dict[str, Any]:
    """Return the least rates of queues at a port, and what is missing of needs, in bit/s by class.

    Raises
    ------
    RequestError
        The document is none; the text begins with the field at fault.
    """
    root = record(document, "input", _RATES, _OPTIONAL)
    capacity_bps = number(root["capacity_bps"], "capacity_bps")
    if capacity_bps < 1:
        raise RequestError(f"capacity_bps: {capacity_bps:g} is below 1")
    floor_pct = within(number(root["floor_pct"], "floor_pct"), "floor_pct", 0, 100)
    classes: dict[str, PortClass] = {}
    for index, item in enumerate(items(root["classes"], "classes")):
        path = f"classes[{index}]"
        found = record(item, path, _PORT_CLASS, _OPTIONAL)
        name = text(found["name"], f"{path}.name")
        if name in classes:
            raise RequestError(f"{path}.name: {name!r} is the name of another class")
        importance = _importance(found["importance"], f"{path}.importance")
        packet_path = f"{path}.packet_bytes"
        packet_bytes = number(found["packet_bytes"], packet_path)
        classes[name] = PortClass(
            name,
            importance,
            number(found["offered_bps"], f"{path}.offered_bps"),
            within(packet_bytes, packet_path, LEAST_PACKET_BYTES, MOST_PACKET_BYTES),
            _goal(found.get("goal"), f"{path}.goal", importance),
        )
    found_rates = queue_rates(capacity_bps, floor_pct, list(classes.values()))
    return found_rates._asdict()


def read_transfers(document: Any) -> TransferInput:
    """Return what decides about transfers.

    Raises
    ------
    RequestError
        The document is none; the text begins with the field at fault.
    """
    root = record(document, "input", _MOMENT | {"classes", "groups"}, _OPTIONAL)
    last_helped = root.get("last_helped_importance")
    moment = TransferPass(
        now_s=number(root["now_s"], "now_s"),
        free=whole(root["free"], "free", 0),
        per_group=within(whole(root["per_group"], "per_group", 0), "per_group", 0, MAX_ALIASES),
        last_goal_s=_time(root, "last_goal_s", ""),
        last_efficiency_s=_time(root, "last_efficiency_s", ""),
        last_helped_importance=None if last_helped is None else _importance(last_helped, "last_helped_importance"),
    )
    groups = {name: _group(item, f"groups.{name}") for name, item in mapping(root["groups"], "groups", None).items()}
    classes = [
        _class(item, f"classes[{index}]", groups) for index, item in enumerate(items(root["classes"], "classes"))
    ]
    return TransferInput(moment, classes, groups)


def transfers_document(decision: TransferDecision) -> dict[str, Any]:
    """Return the transfers of a decision as a document; ``from`` is null for the pool."""
    return {
        "transfers": [
            {"by": str(found.by), "from": found.donor, "to": found.receiver, "reason": found.reason}
            for found in decision.transfers
        ]
    }


def _group(item: Any, path: str) -> GroupState:
    found = record(item, path, _GROUP, _OPTIONAL)
    return GroupState(
        importance=_importance(found["importance"], f"{path}.importance"),
        trees=whole(found["trees"], f"{path}.trees", 1),
        queue=number(found["queue"], f"{path}.queue"),
        utilisation=number(found["utilisation"], f"{path}.utilisation"),
        gain=boolean(found.get("gain", True), f"{path}.gain"),
        enabled=boolean(found.get("enabled", True), f"{path}.enabled"),
        last_action_s=_time(found, "last_action_s", f"{path}."),
    )


def _class(item: Any, path: str, groups: Mapping[str, GroupState]) -> ClassState:
    found = record(item, path, _CLASS, _OPTIONAL)
    members = names(found["groups"], f"{path}.groups")
    for index, group in enumerate(members):
        if group not in groups:
            raise RequestError(f"{path}.groups[{index}]: {group!r} is none of groups")
    return ClassState(
        name=text(found["name"], f"{path}.name"),
        importance=_importance(found["importance"], f"{path}.importance"),
        performance_index=number(found["performance_index"], f"{path}.performance_index"),
        queue_share=within(number(found["queue_share"], f"{path}.queue_share"), f"{path}.queue_share", 0, 1),
        groups=tuple(dict.fromkeys(members)),
    )


def _goal(value: Any, path: str, importance: int) -> Goal | None:
    if value is None:
        return None
    found = mapping(value, path, frozenset(map(str, GoalKind)))
    if len(found) != 1:
        raise RequestError(f"{path}: expected one of {', '.join(GoalKind)}, found {len(found)} goals")
    if importance == DISCRETIONARY:
        raise RequestError(f"{path}: a class of importance {DISCRETIONARY} has no goal")
    kind = GoalKind(next(iter(found)))
    return Goal(kind, within(number(found[kind], f"{path}.{kind}"), f"{path}.{kind}", *GOAL_BOUNDS[kind]))


def _importance(value: Any, path: str) -> int:
    return within(whole(value, path, MOST_IMPORTANT), path, MOST_IMPORTANT, DISCRETIONARY)


def _time(found: Mapping[str, Any], name: str, prefix: str) -> float | None:
    value = found.get(name)
    return None if value is None else number(value, prefix + name)
