"""The section `overcommit`: what must hold between its settings."""

from __future__ import annotations

from controller.config.document import Node
from controller.config.overcommit_settings import COVER, Overcommit, slot_claims
from controller.config.read import NodeReader, line_of
from controller.config.service_class_settings import OFF, Aliases

MAX_SHARING = 256
"""Tenants that may have shares of tables of their own."""


def read_overcommit(reader: NodeReader, node: Node, path: str, aliases: Aliases | None) -> Overcommit:
    """Return the settings, with a fault where tenants have reserved more than a table, or need more than the store.

    With a warning where `aliases`, None being those of the defaults, have no group be under a covering tree.
    """
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
    slots = sum(claim.slots for claim in slot_claims(settings).values())
    if slots > settings.store:
        message = (
            f"the tenants need {slots} slots of the store, what each may have less what it has reserved, and "
            f"overcommit.store is {settings.store}"
        )
        reader.faults.error(line_of(node, "tenants"), f"{path}.tenants", message)
    if settings.mode == COVER and aliases is not None and aliases.mode != OFF:
        message = (
            f"no group is under a covering tree while aliases.mode is {aliases.mode}: groups keep their own entries, "
            f"and swap"
        )
        reader.faults.warn(line_of(node, "mode"), f"{path}.mode", message)
    return settings
