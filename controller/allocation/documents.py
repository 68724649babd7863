"""States of ports, requests for paths and requests for pools as plain values: read, checked, and answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from controller.allocation.candidates import Candidates, Mode
from controller.allocation.families import FAMILIES
from controller.allocation.fields import RequestError, boolean, identifier, identifiers, mapping, number, text, whole
from controller.allocation.metric import PortLoad, assess
from controller.allocation.parameters import ParameterError, read_parameters
from controller.allocation.plan import CandidateNetwork, Initiator, PathPlan, PathRules, Requester, Terms
from controller.allocation.pools import ArrayPort, Pool, PoolChoice, PoolMatch, array_metric, match_num_paths
from controller.allocation.port_list import Scope, read_levels, read_ports
from controller.allocation.request import answer as answer_request
from controller.allocation.request import known_ports, read_affinity, read_mode, read_used

STATE_KEYS = frozenset(
    {"family", "parameters", "port_percent_busy", "cpu_percent_busy", "initiators", "volumes", "valid"}
)
PATH_KEYS = frozenset(
    {"levels", "networks", "hosts", "max_paths", "min_paths", "paths_per_initiator", "used", "affinity", "mode"}
)
NETWORK_KEYS = frozenset({"name", "ports", "previously_allocated"})
POOL_KEYS = frozenset({"size_gb", "max_paths", "levels", "arrays", "pools"})
ARRAY_PORT_KEYS = frozenset(
    {"id", "usage", "registered", "status", "front_end", "network", "disqualified", "components"}
)


def metric_of_state(document: Any) -> dict[str, Any]:
    """Return metric, usage and what disqualifies a port, of a decoded state.json; RequestError names the field."""
    found = mapping(document, "state", STATE_KEYS)
    family = found.get("family")
    if not isinstance(family, str) or family not in FAMILIES:
        raise RequestError(f"family: expected one of {', '.join(FAMILIES)}, found {family!r}")
    try:
        parameters = read_parameters(mapping(found.get("parameters") or {}, "parameters", None))
    except ParameterError as error:
        raise RequestError("; ".join(f"parameters.{fault}" for fault in error.faults)) from None
    valid = boolean(found.get("valid", True), "valid")
    port = _percent(found.get("port_percent_busy"), "port_percent_busy")
    if valid and port is None:
        raise RequestError("port_percent_busy: missing, though the metric is valid")
    load = PortLoad(
        FAMILIES[family],
        port,
        _percent(found.get("cpu_percent_busy"), "cpu_percent_busy"),
        whole(found.get("initiators", 0), "initiators", 0),
        whole(found.get("volumes", 0), "volumes", 0),
        valid,
    )
    answer = assess(load, parameters)
    return {
        "port_metric": answer.port_metric,
        "usage": answer.usage,
        "disqualified": answer.disqualified,
        "reasons": list(answer.reasons),
        "steps": list(answer.steps),
    }


def _percent(value: Any, path: str) -> float | None:
    if value is None:
        return None
    percent = number(value, path)
    if percent > 100:
        raise RequestError(f"{path}: {value!r} is not within 0 and 100")
    return percent


ReadPorts: TypeAlias = Callable[[Any, Sequence[str], str, Scope], Candidates]
"""How the ports of a network are read: as `read_ports` does it."""


class PathRequest(NamedTuple):
    """A request for paths over several networks, that was read."""

    networks: dict[str, CandidateNetwork]
    hosts: list[Requester]
    rules: PathRules
    terms: Terms


def read_paths(document: Any, read: ReadPorts = read_ports, levels: Sequence[str] | None = None) -> PathRequest:
    """Return a request with `networks` and `hosts`, whose ports `read` reads; RequestError names the field at fault.

    `levels` stand in for those that the request does not give.
    """
    found = mapping(document, "request", PATH_KEYS)
    levels = read_levels(list(levels) if levels and found.get("levels") is None else found.get("levels"))
    networks: dict[str, CandidateNetwork] = {}
    for index, item in enumerate(_list(found.get("networks"), "networks")):
        where = f"networks[{index}]"
        network = mapping(item, where, NETWORK_KEYS)
        name = text(network.get("name"), f"{where}.name")
        if name in networks:
            raise RequestError(f"{where}.name: {name!r} is there twice")
        previous = identifiers(network.get("previously_allocated") or [], f"{where}.previously_allocated")
        candidates = read(network.get("ports"), levels, f"{where}.ports", Scope(name, keep=frozenset(previous)))
        known_ports(previous, candidates, f"{where}.previously_allocated")
        networks[name] = CandidateNetwork(candidates, previous)
    hosts: list[Requester] = []
    for index, item in enumerate(_list(found.get("hosts"), "hosts")):
        where = f"hosts[{index}]"
        host = mapping(item, where, frozenset({"name", "initiators"}))
        name = text(host.get("name"), f"{where}.name")
        if name in (other.name for other in hosts):
            raise RequestError(f"{where}.name: {name!r} is there twice")
        hosts.append(Requester(name, _initiators(host.get("initiators"), f"{where}.initiators", networks)))
    max_paths = whole(found.get("max_paths"), "max_paths", 1)
    min_paths = whole(found.get("min_paths", 1), "min_paths", 1)
    if min_paths > max_paths:
        raise RequestError(f"min_paths: {min_paths} is above max_paths {max_paths}")
    rules = PathRules(max_paths, min_paths, whole(found.get("paths_per_initiator", 1), "paths_per_initiator", 1))
    terms = Terms(
        carried=read_used(found.get("used") or {}, levels),
        affinity=read_affinity(found.get("affinity"), levels),
        mode=read_mode(found.get("mode", Mode.DEFAULT.value)),
    )
    return PathRequest(networks, hosts, rules, terms)


def _initiators(value: Any, path: str, networks: dict[str, CandidateNetwork]) -> list[Initiator]:
    found: list[Initiator] = []
    for index, item in enumerate(_list(value, path)):
        where = f"{path}[{index}]"
        initiator = mapping(item, where, frozenset({"id", "network"}))
        name, network = text(initiator.get("id"), f"{where}.id"), text(initiator.get("network"), f"{where}.network")
        if network not in networks:
            raise RequestError(f"{where}.network: {network!r} is not one of networks")
        if name in (other.name for other in found):
            raise RequestError(f"{where}.id: {name!r} is there twice")
        found.append(Initiator(name, network))
    return found


def answer_paths(request: PathRequest, found: PathPlan) -> dict[str, Any]:
    """Return the answer to a request for paths."""
    answers = {name: answer_request(request.networks[name].candidates, each) for name, each in found.networks.items()}
    return {
        "ports": [port for each in answers.values() for port in each["ports"]],
        "networks": answers,
        "paths": [path._asdict() for path in found.paths],
        "used": {level: list(entities) for level, entities in found.carried.used.items()},
    }


class PoolRequest(NamedTuple):
    """A request for a pool that was read: pools, the metric of each array and whether it has the ports."""

    pools: list[Pool]
    metrics: dict[str, float]
    size_gb: float
    matches: dict[str, PoolMatch]


def read_pools(document: Any) -> PoolRequest:
    """Return a request for a pool; RequestError names the field at fault."""
    found = mapping(document, "request", POOL_KEYS)
    levels = read_levels(found.get("levels", []))
    max_paths = whole(found.get("max_paths", 1), "max_paths", 1)
    metrics: dict[str, float] = {}
    matches: dict[str, PoolMatch] = {}
    for index, item in enumerate(_list(found.get("arrays"), "arrays")):
        where = f"arrays[{index}]"
        array = mapping(item, where, frozenset({"id", "ports"}))
        name = text(array.get("id"), f"{where}.id")
        if name in metrics:
            raise RequestError(f"{where}.id: {name!r} is there twice")
        listed = _list(array.get("ports"), f"{where}.ports")
        ports = [_array_port(port, f"{where}.ports[{number_}]") for number_, port in enumerate(listed)]
        metrics[name], matches[name] = array_metric(ports), match_num_paths(ports, max_paths, levels)
    pools: list[Pool] = []
    for index, item in enumerate(_list(found.get("pools"), "pools")):
        where = f"pools[{index}]"
        pool = mapping(item, where, frozenset({"id", "array", "free_gb"}))
        array_name = text(pool.get("array"), f"{where}.array")
        if array_name not in metrics:
            raise RequestError(f"{where}.array: {array_name!r} is not one of arrays")
        free_gb = number(pool.get("free_gb"), f"{where}.free_gb")
        pools.append(Pool(text(pool.get("id"), f"{where}.id"), array_name, free_gb))
    return PoolRequest(pools, metrics, number(found.get("size_gb"), "size_gb"), matches)


def _array_port(value: Any, where: str) -> ArrayPort:
    found = mapping(value, where, ARRAY_PORT_KEYS)
    usage, network = found.get("usage"), found.get("network")
    components = mapping(found.get("components") or {}, f"{where}.components", None)
    return ArrayPort(
        str(identifier(found.get("id"), f"{where}.id")),
        None if usage is None else number(usage, f"{where}.usage"),
        boolean(found.get("registered", True), f"{where}.registered"),
        text(found.get("status", "OK"), f"{where}.status"),
        boolean(found.get("front_end", True), f"{where}.front_end"),
        None if network is None else text(network, f"{where}.network"),
        boolean(found.get("disqualified", False), f"{where}.disqualified"),
        {
            level: text(entity, f"{where}.components.{level}")
            for level, entity in components.items()
            if entity is not None
        },
    )


def answer_pools(request: PoolRequest, found: PoolChoice) -> dict[str, Any]:
    """Return the answer to a request for a pool."""
    return {
        "pool": None if found.pool is None else found.pool.name,
        "array": None if found.pool is None else found.pool.array,
        "pools": [
            {
                "id": each.pool.name,
                "array": each.pool.array,
                "free_gb": each.pool.free,
                "array_metric": each.array_metric,
                "fits": each.fits,
                "reason": each.reason,
            }
            for each in found.ranked
        ],
        "arrays": {
            name: {
                "metric": metric,
                "usable_ports": request.matches[name].usable,
                "matches": request.matches[name].matches,
                "reason": request.matches[name].reason,
            }
            for name, metric in request.metrics.items()
        },
    }


def _list(value: Any, path: str) -> list[Any]:
    if not isinstance(value, list):
        raise RequestError(f"{path}: expected a list")
    return value
