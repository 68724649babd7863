"""The section `cluster`: what must hold between its settings."""

from __future__ import annotations

from controller.config.cluster_settings import (
    NO_ENGINE,
    Cluster,
    crosses_in_clear,
    endpoint_problem,
    is_fabric_name,
)
from controller.config.document import Node
from controller.config.faults import quoted
from controller.config.read import NodeReader, line_of

MAX_ENDPOINTS = 16


def read_cluster(reader: NodeReader, node: Node, path: str) -> Cluster:
    """Return the settings of a mapping, with a fault for each that does not go with the others."""
    cluster = reader.settings(Cluster, node, path)

    def fault(name: str, message: str) -> None:
        reader.faults.error(line_of(node, name), f"{path}.{name}", message)

    endpoints = cluster.endpoints.split()
    if len(endpoints) > MAX_ENDPOINTS:
        fault("endpoints", f"{len(endpoints)} addresses; at most {MAX_ENDPOINTS} are supported")
    problems = [problem for endpoint in endpoints if (problem := endpoint_problem(endpoint)) is not None]
    for problem in problems:
        fault("endpoints", problem)
    if not is_fabric_name(cluster.fabric):
        message = "cannot name a fabric: a letter or digit, then up to 62 of these, dots, underscores and hyphens"
        fault("fabric", f"{quoted(cluster.fabric)} {message}")
    for given, missing in (("certificate", "key"), ("key", "certificate")):
        if getattr(cluster, given) and not getattr(cluster, missing):
            reader.faults.error(line_of(node, given), f"{path}.{missing}", f"missing, while {given} is there")
    if cluster.engine == NO_ENGINE:
        return cluster
    if not endpoints:
        fault("endpoints", "missing, while engine is etcd")
    in_clear = [] if problems or not cluster.password_file else list(filter(crosses_in_clear, endpoints))
    if in_clear:
        fault("password_file", f"the password would cross the network to {in_clear[0]} in clear: use https://")
    return cluster
