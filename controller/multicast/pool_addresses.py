"""Addresses that operators take from pools of the policy by name, and give back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from controller.config.policy import AddressPool, Policy
from controller.kernel.domains import in_domain
from controller.kernel.group_macs import same_mac
from controller.log import LogEntry, LogEntryKind
from controller.multicast.address_pools import AddressPools, TakenAddress
from controller.multicast.callbacks import Perform
from controller.multicast.change_feed import ChangeFeed
from controller.multicast.events import AddressReleased, AddressTakeAsked
from controller.multicast.groups import GroupPlane
from controller.multicast.memberships import Memberships
from controller.multicast.operator_answers import SettingRefused, answer_operator
from controller.multicast.operator_settings import SETTINGS_BOUND
from controller.multicast.pending_writes import PendingWrites
from controller.snapshot.events import Severity, State
from controller.snapshot.log import Document, DocumentLog
from controller.wire.addresses import format_ip, format_mac, group_mac

ADDRESS = "address"
"""What the keys of the log begin with that are about addresses."""

ALMOST_FULL_PCT = 90
"""Of the addresses of a pool: when so many are taken operators are told."""


class PoolAddresses:
    """The addresses that were taken: by the same name the same one, over restarts and whatever becomes of the pool.

    Attributes
    ----------
    pools_section, section
        The documents of pools, and of addresses.
    """

    def __init__(
        self,
        policy: Policy,
        plane: GroupPlane,
        memberships: Memberships,
        pending_writes: PendingWrites,
        feed: ChangeFeed,
        perform: Perform,
    ) -> None:
        self._plane = plane
        self._memberships = memberships
        self._pending_writes = pending_writes
        self._feed = feed
        self._perform = perform
        self._pools = AddressPools(policy.pools)
        self._almost_full: set[str] = set()
        self.pools_section: DocumentLog[str] = DocumentLog(self._pools.names, self._pool_document)
        self.section: DocumentLog[tuple[str, str]] = DocumentLog(
            lambda: [taken[:2] for taken in self._pools.taken()], self._document, "/".join
        )
        self.handlers: dict[type, Callable[[Any, float], None]] = {
            AddressTakeAsked: self._take_asked,
            AddressReleased: self._released,
        }

    def use(self, pools: Iterable[AddressPool], now: float) -> None:
        """Give addresses of these pools from now on; who has one keeps it."""
        self._pools.use(pools)
        self.pools_section.log.forget()
        self.section.log.forget()
        for pool in self._pools.names():
            self._look(pool, now)

    def taken(self) -> Iterator[TakenAddress]:
        """Yield what is taken."""
        return self._pools.taken()

    # The log

    def keys(self) -> Iterator[str]:
        """Yield what the log calls the addresses."""
        for pool, name, _ in self._pools.taken():
            yield f"{ADDRESS}/{pool}/{name}"

    def entry(self, log_key: str) -> LogEntry:
        """Return what the log is told of an address."""
        _, pool, name = log_key.split("/")
        address = self._pools.address(pool, name)
        value = None if address is None else {"pool": pool, "name": name, "address": format_ip(address)}
        return LogEntry.of_record(LogEntryKind.DECISION, log_key, value)

    def restore(self, taken: TakenAddress) -> None:
        """Take over an address that the log has; nobody is told."""
        self._pools.put(taken)
        self._touch(taken.pool, taken.name)
        self._note(taken.pool)

    def forget(self, pool: str, name: str) -> None:
        """Take it that the log has an address no more."""
        self._pools.remove(pool, name)
        self._touch(pool, name)
        self._note(pool)

    # What operators ask

    def _take_asked(self, event: AddressTakeAsked, now: float) -> None:
        answer_operator(self._feed.names, self._perform, partial(self._take, *event, now))

    def _released(self, event: AddressReleased, now: float) -> None:
        answer_operator(self._feed.names, self._perform, partial(self._release, *event, now))

    def _take(self, pool: str, name: str, now: float) -> Document:
        if self._pools.address(pool, name) is None:
            address = self._free(pool)
            self._pools.put(TakenAddress(pool, name, address))
            text = f"The address {format_ip(address)} of the pool {pool} is {name}'s."
            self._tell(pool, name, "address-taken", text, now)
        return self._shown(pool, name)

    def _free(self, pool: str) -> bytes:
        if self._pools.ranges(pool) is None:
            raise SettingRefused("pool", f"the policy file has no pool {pool}")
        if len(self._pools) >= SETTINGS_BOUND:
            raise SettingRefused("name", f"{SETTINGS_BOUND} addresses are taken, as many as are kept")
        address = self._pools.next_free(pool, self._is_used)
        if address is None:
            count, size = self._pools.count(pool), self._pools.size(pool)
            others = "" if count >= size else ", and the MAC addresses of the others are those of groups in use"
            raise SettingRefused("pool", f"{count} of the {size} addresses of the pool {pool} are taken{others}")
        return address

    def _release(self, pool: str, name: str, now: float) -> Document:
        address = self._pools.address(pool, name)
        if address is None:
            raise SettingRefused("name", f"{name} has no address of the pool {pool}")
        released = {**self._shown(pool, name), "released": True}
        self._pools.remove(pool, name)
        text = f"The address {format_ip(address)} of the pool {pool} is free: {name} has given it back."
        self._tell(pool, name, "address-released", text, now)
        return released

    def _is_used(self, address: bytes) -> bool:
        """Tell whether a group with this MAC address has members or senders, in any VLAN."""
        groups = self._plane.groups
        vlan_ids = [vlan_id for vlan_id, _ in self._memberships.all()]
        return any(in_domain(other, vlan_id) in groups for other in same_mac(address) for vlan_id in vlan_ids)

    def _tell(self, pool: str, name: str, kind: str, text: str, now: float) -> None:
        self._pending_writes.record_changed(f"{ADDRESS}/{pool}/{name}", now)
        self._touch(pool, name)
        self._feed.events.add(now, kind, text)
        self._look(pool, now)

    def _touch(self, pool: str, name: str) -> None:
        self.pools_section.touch(pool)
        self.section.touch((pool, name))

    def _note(self, pool: str) -> bool:
        """Take note of whether a pool is almost full; tell whether that is otherwise than before."""
        size = self._pools.size(pool)
        is_almost_full = size > 0 and 100 * self._pools.count(pool) >= ALMOST_FULL_PCT * size
        if is_almost_full is (pool in self._almost_full):
            return False
        (self._almost_full.add if is_almost_full else self._almost_full.discard)(pool)
        return True

    def _look(self, pool: str, now: float) -> None:
        """Tell operators when a pool becomes almost full, and when it is no more."""
        if not self._note(pool):
            return
        of = f"{self._pools.count(pool)} of the {self._pools.size(pool)} addresses of the pool {pool} are taken"
        if pool in self._almost_full:
            text, severity, state = f"{of}: give it another range.", Severity.WARNING, State.RAISED
        else:
            text, severity, state = f"{of}: there is room again.", Severity.INFO, State.CLEARED
        self._feed.events.add(now, "pool-almost-full", text, severity=severity, state=state)

    # Documents

    def _shown(self, pool: str, name: str) -> Document:
        document = self._document((pool, name))
        assert document is not None
        return document

    def _document(self, key: tuple[str, str]) -> Document | None:
        pool, name = key
        address = self._pools.address(pool, name)
        if address is None:
            return None
        said = {"pool": pool, "name": name, "address": format_ip(address), "mac": format_mac(group_mac(address))}
        return {**said, "in_pool": self._pools.has(pool, address)}

    def _pool_document(self, pool: str) -> Document | None:
        ranges, takers = self._pools.ranges(pool), self._pools.takers(pool)
        if ranges is None and not takers:
            return None
        outside = takers - self._pools.count(pool)
        said = {"pool": pool, "ranges": [str(prefix) for prefix in ranges or ()]}
        return {**said, "addresses": self._pools.size(pool), "taken": takers, "outside": outside}
