"""What a controller that was elected has of the store before it leads, off its loops: that waits for a network."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import NamedTuple

from apps.cluster.engine_log import EngineLog
from apps.cluster.lead import Lead, StoredLog
from apps.cluster.link import SidecarLink
from apps.cluster.log_feed import LogFeed
from apps.cluster.shared_policy import NotLeading, SharedPolicy
from controller.cluster.engine import Committed, ConditionFailed, KeyCondition, KeyPage, PutKey, ReadPage, Transaction
from controller.cluster.keys import Keys
from controller.cluster.place import Renew, TakeOver
from controller.discovery.app import SECRET_BYTES

FOLLOWED_S = 2.0
"""How long what is in the store already may take to be told."""


class LeadLogs(NamedTuple):
    """How the logs of a fabric are written by who leads: `refused` is called, on a thread, where they cannot be.

    `version` returns that of the records as they are written at the moment.
    """

    link: SidecarLink
    fabric: str
    refused: Callable[[], None]
    version: Callable[[], int]

    def of(self, fence: KeyCondition) -> tuple[EngineLog, EngineLog]:
        """Return the journal and the hosts, where writes have a condition."""
        journal = EngineLog(self.link, self.fabric, fence, self.refused, version=self.version)
        keys = Keys(self.fabric)
        return journal, EngineLog(self.link, self.fabric, fence, self.refused, keys.hosts, self.version)


def begin_lead(logs: LeadLogs, feed: LogFeed, order: TakeOver, policy: SharedPolicy) -> Lead:
    """Return what an epoch begins with, when all of the logs is followed.

    Nobody writes to them any more but this epoch: when the feed has told its first write, it has told all before.
    TimeoutError where the store does not answer, `NotLeading` where another one leads.
    """
    link, keys, fence = logs.link, Keys(logs.fabric), order.fence
    secret = _secret(link, keys, fence)
    if not feed.wait(_taken_over(link, keys, order), FOLLOWED_S):
        raise TimeoutError("what the leader before wrote was not told to its end")
    in_force = policy.taken_over(fence)
    feed.close()
    journal, hosts = logs.of(fence)
    return Lead(
        order.epoch, secret, StoredLog(journal, feed.journal.write), StoredLog(hosts, feed.hosts.write), in_force
    )


def write_anew(logs: LeadLogs, order: Renew, secret: bytes) -> Lead:
    """Return where an epoch goes on in a store that has lost all, and which has the members' common key again.

    TimeoutError where the store does not answer, `NotLeading` where another one leads.
    """
    keys, fence = Keys(logs.fabric), order.fence
    _write(logs.link, Transaction((fence,), (PutKey(keys.secret, secret.hex()),), True))
    journal, hosts = logs.of(fence)
    return Lead(order.epoch, secret, StoredLog(journal, 0), StoredLog(hosts, 0))


def _secret(link: SidecarLink, keys: Keys, fence: KeyCondition) -> bytes:
    """Return the key of LLDP frames, which the first one who leads has made."""
    for _ in range(2):
        reply = link.ask(ReadPage(keys.secret))
        if type(reply) is not KeyPage:
            raise TimeoutError(getattr(reply, "why", type(reply).__name__))
        for held in reply.held:
            if held.key == keys.secret:
                return bytes.fromhex(held.value)
        put = PutKey(keys.secret, secrets.token_hex(SECRET_BYTES))
        _write(link, Transaction((fence, KeyCondition(keys.secret, 0)), (put,), False))
    raise TimeoutError("the key of LLDP frames is not kept")


def _taken_over(link: SidecarLink, keys: Keys, order: TakeOver) -> int:
    """Have the store say that an epoch has taken the logs over, and return the revision from which on it does.

    A slow store does so after its answer was given up: it is looked at, for to be asked again would make it slower.
    """
    put = PutKey(keys.taken_over, str(order.epoch))
    try:
        return _write(link, Transaction((order.fence,), (put,), True))
    except TimeoutError:
        page = link.ask(ReadPage(put.key))
        found = page.held if type(page) is KeyPage else ()
        for held in found:
            if (held.key, held.value) == (put.key, put.value):
                return held.revision
        raise


def _write(link: SidecarLink, transaction: Transaction) -> int:
    """Have a transaction done, and return the store's revision with it."""
    reply = link.ask(transaction)
    if type(reply) is ConditionFailed:
        raise NotLeading
    if type(reply) is not Committed:
        raise TimeoutError(getattr(reply, "why", type(reply).__name__))
    return reply.revision
