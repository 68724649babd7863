"""Wrong tokens by client, so that nobody can try many."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any

from apps.dashboard.limits import ServerLimits

PREFIX_LENGTH = 64
"""IPv6 clients are told apart by their subnets: any host has all addresses of its own."""

TOLD = 10


@dataclass(slots=True)
class _Client:
    digests: deque[bytes]
    full_s: float = 0.0
    """When what it has guessed is forgiven in whole."""
    count: int = 0


class Guesses:
    """Each client may send `ServerLimits.guesses` different wrong tokens, and one more each `ServerLimits.guess_s`.

    One that is sent again tells who sends it nothing new and is no further guess, so that a program with a token of
    yesterday keeps nobody else at its address out.
    """

    def __init__(self, limits: ServerLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._clients: OrderedDict[str, _Client] = OrderedDict()
        self._forgotten = 0

    def wait_s(self, address: str) -> float:
        """Return for how long no token of a client is looked at, 0 where the next one is."""
        client = self._clients.get(_key(address))
        if client is None:
            return 0.0
        return max(0.0, client.full_s - self._clock() - (self._limits.guesses - 1) * self._limits.guess_s)

    def note(self, address: str, digest: bytes) -> None:
        """Count a wrong token."""
        key = _key(address)
        client = self._clients.get(key)
        if client is None:
            client = self._clients[key] = _Client(deque(maxlen=self._limits.guesses))
            if len(self._clients) > self._limits.guessers:
                self._clients.popitem(last=False)
                self._forgotten += 1
        self._clients.move_to_end(key)
        client.count += 1
        if digest not in client.digests:
            client.digests.append(digest)
            client.full_s = max(client.full_s, self._clock()) + self._limits.guess_s

    def document(self) -> dict[str, Any]:
        """Return how many wrong tokens came from the clients with most of them."""
        most = sorted(self._clients.items(), key=lambda item: -item[1].count)[:TOLD]
        return {
            "clients": {key: client.count for key, client in most},
            "clients_forgotten": self._forgotten,
        }


def _key(address: str) -> str:
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    return str(parsed.ipv4_mapped or ip_network((parsed, PREFIX_LENGTH), strict=False))
