"""What a controller that was elected reads of the store before it leads, off its loops: that waits for a network."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from apps.cluster.engine_log import EngineLog
from apps.cluster.lead import Lead, StoredLog
from apps.cluster.link import SidecarLink
from apps.cluster.shared_policy import NotLeading, SharedPolicy
from apps.registry import SECRET_BYTES
from controller.cluster.engine import Committed, ConditionFailed, KeyCondition, KeyPage, PutKey, ReadPage, Transaction
from controller.cluster.keys import Keys
from controller.cluster.place import Renew, TakeOver


def read_lead(
    link: SidecarLink, fabric: str, order: TakeOver, refused: Callable[[], None], policy: SharedPolicy
) -> Lead:
    """Return what an epoch begins with.

    TimeoutError where the store does not answer, `NotLeading` where another one leads.
    """
    keys, fence = Keys(fabric), order.fence
    journal = EngineLog(link, fabric, fence, refused)
    hosts = EngineLog(link, fabric, fence, refused, keys.hosts)
    secret = _secret(link, keys, fence)
    kept = StoredLog(journal, *journal.read()), StoredLog(hosts, *hosts.read())
    return Lead(order.epoch, secret, *kept, policy.taken_over(fence))


def write_anew(link: SidecarLink, fabric: str, order: Renew, secret: bytes, refused: Callable[[], None]) -> Lead:
    """Return where an epoch goes on in a store that has lost all, and which has the members' common key again.

    TimeoutError where the store does not answer, `NotLeading` where another one leads.
    """
    keys, fence = Keys(fabric), order.fence
    _write(link, Transaction((fence,), (PutKey(keys.secret, secret.hex()),), True))
    journal = EngineLog(link, fabric, fence, refused)
    hosts = EngineLog(link, fabric, fence, refused, keys.hosts)
    return Lead(order.epoch, secret, StoredLog(journal, 0, ()), StoredLog(hosts, 0, ()))


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


def _write(link: SidecarLink, transaction: Transaction) -> None:
    reply = link.ask(transaction)
    if type(reply) is ConditionFailed:
        raise NotLeading
    if type(reply) is not Committed:
        raise TimeoutError(getattr(reply, "why", type(reply).__name__))
