"""The documents of address pools."""

from __future__ import annotations

from pydantic import Field

from apps.dashboard.model_parts import Identified


class PoolModel(Identified):
    """A pool of addresses of groups."""

    pool: str | None = None
    ranges: list[str] | None = None
    addresses: int | None = Field(default=None, description="How many it can give, no two with one MAC address.")
    taken: int | None = None
    outside: int | None = Field(default=None, description="How many of these are in no range of it any more.")


class PoolAddressModel(Identified):
    """An address that somebody has from a pool."""

    pool: str | None = None
    name: str | None = Field(default=None, description="Whose it is.")
    address: str | None = None
    mac: str | None = None
    in_pool: bool | None = Field(default=None, description="Whether a range of the pool has it still.")
