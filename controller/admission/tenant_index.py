"""Which tenants a host is of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from controller.config.policy import Tenant
from controller.config.terms import MacAddress, Prefix, SwitchPort, mask_address


class TenantIndex:
    """The tenants of a policy, found by MAC address, port and IP address; a look-up takes as long for any number."""

    def __init__(self, tenants: Sequence[Tenant]) -> None:
        self._macs: dict[bytes, list[str]] = {}
        self._ports: dict[tuple[int, int], list[str]] = {}
        self._prefixes: dict[tuple[int, int], dict[bytes, list[str]]] = {}
        for tenant in tenants:
            for term in tenant.hosts:
                match term:
                    case MacAddress(mac=mac):
                        self._macs.setdefault(mac, []).append(tenant.name)
                    case SwitchPort(dpid=dpid, port_no=port_no):
                        self._ports.setdefault((dpid, port_no), []).append(tenant.name)
                    case Prefix(network=network, length=length):
                        alike = self._prefixes.setdefault((len(network), length), {})
                        alike.setdefault(network, []).append(tenant.name)

    def of(self, mac: bytes | None, addresses: Iterable[bytes], dpid: int, port_no: int) -> tuple[str, ...]:
        """Return the tenants of a host, in the order of their names.

        Parameters
        ----------
        mac
            6 bytes, None where no host is known, only a port.
        addresses
            The IP addresses that it is known to hold, 4 or 16 bytes.
        dpid, port_no
            Where it is.
        """
        found = {*self._ports.get((dpid, port_no), ())}
        if mac is not None:
            found.update(self._macs.get(mac, ()))
        for address in addresses:
            found.update(self._holding(address))
        return tuple(sorted(found))

    def _holding(self, address: bytes) -> Iterator[str]:
        for (size, length), alike in self._prefixes.items():
            if size == len(address):
                yield from alike.get(mask_address(address, length), ())
