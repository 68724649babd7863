"""What of a running controller's documents is configuration, and what somebody changed of it.

Counters, rates, and what hosts and cables cause are no configuration: the fields of switches and ports that
are stand in `CONFIGURED`; of routers it is `static`. What databases of switches have is in `database_columns`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from controller.config import document
from controller.config.faults import Faults

Fields: TypeAlias = Mapping[str, Any]
Properties: TypeAlias = dict[str, str]

PORT, SWITCH, POLICY = "port", "switch", "policy"
"""The types of resources."""

EDGE = "edge"
"""The role of a port that hosts are behind; the VLANs of other ports are not told."""

ROUTER_PORT = "router_port"

SECTIONS = ("switches", "ports", "routers", "policy")
"""The sections of the change feed that have configuration."""


class Resource(NamedTuple):
    """What has properties: a switch by its datapath id, a port by that and its number, the policy."""

    kind: str
    name: str


class ConfigurationChange(NamedTuple):
    """A property of a resource that is another than before; an empty text stands for none."""

    resource: Resource
    name: str
    old: str
    new: str


def _whole(value: Any) -> Properties:
    return {"": _text(value)}


def _labels(value: Any) -> Properties:
    return {f".{key}": _text(label) for key, label in value.items()}


def _some(*names: str) -> Callable[[Any], Properties]:
    def read(value: Any) -> Properties:
        return {f".{name}": _text(value[name]) for name in names if value.get(name) is not None}

    return read


def _static_members(value: Any) -> Properties:
    return {f".{each['group']}": _text(each.get("set_by") or True) for each in value}


CONFIGURED: Mapping[str, Mapping[str, Callable[[Any], Properties]]] = MappingProxyType(
    {
        "switches": {"name": _whole, "labels": _labels, "drained": _whole},
        "ports": {
            "name": _whole,
            "labels": _labels,
            "vlans": _some("untagged", "tagged"),
            "link_aggregation": _some("name", "mode"),
            "static_members": _static_members,
        },
    }
)
"""Per section its fields that are configuration, and what of them: each value by how it goes on from their name."""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def policy_properties(text: str) -> Properties:
    """Return the settings of a policy file by where they stand, such as ``multicast.querier.interval_s``.

    Of a list, elements with a name go by it, and a list that has others is one value.
    """
    root = document.parse(text, Faults())
    return {} if root is None else dict(_settings(root, ""))


def _settings(node: document.Node, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, document.Scalar):
        yield path, node.text
    elif isinstance(node, document.Mapping):
        for key, child in node.pairs:
            if isinstance(key, document.Scalar):
                yield from _settings(child, f"{path}.{key.text}" if path else key.text)
    elif isinstance(node, document.Sequence):
        names = [_name_of(each) for each in node.items]
        if names and None not in names and len(set(names)) == len(names):
            for name, child in zip(names, node.items, strict=True):
                yield from _settings(child, f"{path}.{name}")
        else:
            yield path, json.dumps([_plain(each) for each in node.items])


def _name_of(node: document.Node) -> str | None:
    """Return the name of an element of a list, None where it has none."""
    if not isinstance(node, document.Mapping):
        return None
    for key, value in node.pairs:
        if isinstance(key, document.Scalar) and key.text == "name" and isinstance(value, document.Scalar):
            return value.text
    return None


def _plain(node: document.Node) -> Any:
    if isinstance(node, document.Scalar):
        return node.text
    if isinstance(node, document.Sequence):
        return [_plain(each) for each in node.items]
    if isinstance(node, document.Mapping):
        return {str(_plain(key)): _plain(value) for key, value in node.pairs}
    return None


class _Aspect(NamedTuple):
    """Properties of a resource that are told together, by `field`, the first part of their names."""

    resource: Resource
    field: str


class Configuration:
    """What is configured of each resource, followed by documents; `taken` makes what was found the one of before.

    Router ports that are declared are properties of their ports. What is not told is as it was: a switch that is away
    has not been configured otherwise, nor has a port the VLANs of which are not shown as no host is behind it.

    Parameters
    ----------
    known
        Properties that were recorded last: what is told first is compared with these.
    from_nothing
        Whether what has not been recorded was not set before; else it is taken as having been what is told first.
    """

    def __init__(self, known: Mapping[Resource, Properties], from_nothing: bool) -> None:
        self._from_nothing = from_nothing
        self._recorded: dict[_Aspect, Properties] = {}
        for resource, properties in known.items():
            for name, value in properties.items():
                field = POLICY if resource.kind == POLICY else name.partition(".")[0]
                self._recorded.setdefault(_Aspect(resource, field), {})[name] = value
        self._now: dict[_Aspect, Properties] = {}
        self._found: dict[_Aspect, Properties] = {}
        self._router_ports: dict[str, tuple[_Aspect, str]] = {}
        self._declared: dict[_Aspect, Properties] = {}
        self._connected: set[int] = set()

    def put(self, section: str, fields: Fields) -> None:
        """Take a document of a section."""
        if section == "policy":
            self._find(_Aspect(Resource(POLICY, POLICY), POLICY), policy_properties(fields.get("text") or ""))
        elif section == "routers":
            self._router(fields)
        else:
            kind = SWITCH if section == "switches" else PORT
            if kind == SWITCH:
                (self._connected.add if fields.get("connected") else self._connected.discard)(fields["dpid"])
            resource = Resource(kind, fields["id"])
            for name, read in CONFIGURED[section].items():
                aspect, value = _Aspect(resource, name), fields.get(name)
                if value is not None:
                    self._find(aspect, {name + rest: text for rest, text in read(value).items()})
                elif fields.get("role", EDGE) == EDGE and (aspect in self._now or aspect in self._found):
                    self._find(aspect, {})

    def set(self, resource: Resource, field: str, properties: Properties) -> None:
        """Take what a resource has of a field that is in no document; it is the first part of the names."""
        self._find(_Aspect(resource, field), properties)

    def remove(self, section: str, id_: str) -> None:
        """Take it that there is a document no more."""
        if section == "routers" and id_ in self._router_ports:
            aspect, name = self._router_ports[id_]
            if int(aspect.resource.name.partition(":")[0]) in self._connected:
                del self._router_ports[id_]
                self._declare(aspect, name, False)

    def _router(self, fields: Fields) -> None:
        if fields.get("port_no") is None:
            return
        aspect = _Aspect(Resource(PORT, f"{fields['dpid']}:{fields['port_no']}"), ROUTER_PORT)
        vlan = f"@{fields['vlan']}" if fields.get("vlan") else ""
        name = f"{ROUTER_PORT}.{fields['family']}{vlan}"
        self._router_ports[fields["id"]] = (aspect, name)
        self._declare(aspect, name, bool(fields.get("static")))

    def _declare(self, aspect: _Aspect, name: str, is_declared: bool) -> None:
        declared = self._declared.setdefault(aspect, {})
        if is_declared:
            declared[name] = "true"
        else:
            declared.pop(name, None)
        self._find(aspect, dict(declared))

    def _find(self, aspect: _Aspect, properties: Properties) -> None:
        if self._now.get(aspect) != properties:
            self._found[aspect] = properties
        else:
            self._found.pop(aspect, None)

    def changes(self) -> list[ConfigurationChange]:
        """Return what is other than before, in the order in which it was told."""
        return [change for aspect, now in self._found.items() for change in self._of(aspect, now)]

    def _of(self, aspect: _Aspect, now: Properties) -> Iterable[ConfigurationChange]:
        before = self._now.get(aspect)
        if before is None:
            recorded = self._recorded.get(aspect, {})
            before = recorded if self._from_nothing else {**now, **recorded}
        for name in sorted(before.keys() | now.keys()):
            old, new = before.get(name, ""), now.get(name, "")
            if old != new:
                yield ConfigurationChange(aspect.resource, name, old, new)

    def taken(self) -> None:
        """Go on from what was found: it is recorded."""
        for aspect in self._found:
            self._recorded.pop(aspect, None)
        self._now.update(self._found)
        self._found.clear()
