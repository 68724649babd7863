"""What is told to the core of queues of databases, and what it asks for; `server` is as in the policy."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias


class DatabaseRead(NamedTuple):
    """A server is there, and told all that was asked (`database_copy.REQUESTS`)."""

    server: str
    updates: Any


class DatabaseUpdated(NamedTuple):
    """A server told what is otherwise now."""

    server: str
    updates: Any


class DatabaseLost(NamedTuple):
    """A server cannot be reached, or not any more; what it was asked may have been done or not."""

    server: str
    reason: str


class Transacted(NamedTuple):
    """A server has done a transaction whole, or nothing of it, and why."""

    server: str
    number: int
    error: str | None


class ServersWanted(NamedTuple):
    """Stay connected to these servers and no others."""

    servers: tuple[str, ...]


class Transact(NamedTuple):
    """Have a server do these operations, all or none."""

    server: str
    number: int
    operations: tuple[dict[str, Any], ...]


class ReadAnew(NamedTuple):
    """Connect to a server anew: what it told makes no sense."""

    server: str


DatabaseEvent: TypeAlias = DatabaseRead | DatabaseUpdated | DatabaseLost | Transacted
