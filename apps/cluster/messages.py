"""What a controller and the process beside it tell each other, over a socket that only these two have."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from controller.cluster.engine import Reply, Request, WatchReport
from controller.cluster.keys import Leader
from controller.cluster.versions import RECORDS

_LENGTH = struct.Struct("!I")


class Beat(NamedTuple):
    """The controller is there; its loop made no progress for `idle_s` seconds; it is connected to `switches`.

    One that is not fit takes no part, whatever becomes of others.
    """

    idle_s: float
    switches: frozenset[int] = frozenset()
    is_fit: bool = True


class AskStore(NamedTuple):
    """Have the store answer a request."""

    number: int
    request: Request


class WatchStore(NamedTuple):
    """Tell changes of keys that begin with `prefix`, of later revisions than `after_revision`."""

    watch: int
    prefix: str
    after_revision: int


class EndWatch(NamedTuple):
    """Tell nothing more by a watch."""

    watch: int


class StoreAnswered(NamedTuple):
    """The store's answer to the request with this number."""

    number: int
    reply: Reply


class StoreTold(NamedTuple):
    """What a watch told."""

    watch: int
    report: WatchReport


class Pulse(NamedTuple):
    """The process beside heard a beat."""


class Seen(NamedTuple):
    """What is known of the cluster: who leads, who is a member, whether the store answers; this member's lease.

    `peers` says where members are heard, `switches` to how many switches each is connected, and `dpids` to which, by
    name; there an earlier program's is connected to none. `records` is the latest version of the logs' records that
    all members read.
    """

    leader: Leader | None = None
    epoch: int = 0
    members: tuple[str, ...] = ()
    is_store_silent: bool = False
    lease: int = 0
    peers: Mapping[str, str] = MappingProxyType({})
    switches: Mapping[str, int] = MappingProxyType({})
    records: int = RECORDS
    dpids: Mapping[str, frozenset[int]] = MappingProxyType({})


class MessageSocket(Protocol):
    """A connected socket."""

    def sendall(self, data: bytes, /) -> None:
        """Send all of `data`."""

    def recv(self, count: int, /) -> bytes:
        """Return some bytes, none at the end."""


def send(stream: MessageSocket, message: Any) -> None:
    """Send a message; OSError where nobody takes it any more."""
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    stream.sendall(_LENGTH.pack(len(data)) + data)


def receive(stream: MessageSocket) -> Any:
    """Return the next message, waiting for it; EOFError where there is none any more."""
    (length,) = _LENGTH.unpack(_exactly(stream.recv, _LENGTH.size))
    return pickle.loads(_exactly(stream.recv, length))


def _exactly(read: Callable[[int], bytes], count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        part = read(count - len(data))
        if not part:
            raise EOFError
        data += part
    return bytes(data)
