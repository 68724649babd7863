"""The section `overcommit`: what must hold between its settings."""

from __future__ import annotations

from controller.config.document import Node
from controller.config.overcommit_settings import Overcommit
from controller.config.read import NodeReader, line_of

MAX_SHARING = 256
"""Tenants that may have shares of tables of their own."""


def read_overcommit(reader: NodeReader, node: Node, path: str) -> Overcommit:
    """Return the settings, with a fault where tenants have reserved more than a table has room for."""
    settings = reader.settings(Overcommit, node, path)
    if len(settings.tenants) > MAX_SHARING:
        message = f"{len(settings.tenants)} tenants; at most {MAX_SHARING} are supported"
        reader.faults.error(line_of(node, "tenants"), f"{path}.tenants", message)
    reserved = sum(each.share.reservation for each in settings.tenants)
    capacity = settings.capacity
    smallest = min(
        (said for said in (capacity.default, *(each.entries for each in capacity.switches)) if said is not None),
        default=None,
    )
    if smallest is not None and reserved > smallest:
        message = f"{reserved} entries are reserved, and a table has room for {smallest}"
        reader.faults.error(line_of(node, "tenants"), f"{path}.tenants", message)
    return settings
