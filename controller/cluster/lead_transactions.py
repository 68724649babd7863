"""What a member asks of the store about the lead: each is one transaction."""

from __future__ import annotations

from controller.cluster.engine import Delete, KeyCondition, PutKey, Transaction
from controller.cluster.keys import Keys, Leader, Present


def registration(keys: Keys, present: Present, lease: int) -> Transaction:
    """Return what has a member known, as long as its lease lasts."""
    return Transaction((), (PutKey(f"{keys.members}{present.member}", present.text(), lease),), True)


def election(keys: Keys, seen: tuple[KeyCondition, ...], leader: Leader, lease: int) -> Transaction:
    """Return what has a member lead, in an epoch of its own, where leader and epoch are as they were seen."""
    edits = PutKey(keys.epoch, str(leader.epoch)), PutKey(keys.leader, leader.text(), lease), Delete(keys.successor)
    return Transaction(seen, edits)


def challenge(keys: Keys, member: str) -> Transaction:
    """Return what asks the leader to put its key again."""
    return Transaction((), (PutKey(keys.challenge, member),), True)


def answer(keys: Keys, fence: KeyCondition, leader: Leader, lease: int) -> Transaction:
    """Return what has a leader put its key again that is there."""
    return Transaction((fence,), (PutKey(keys.leader, leader.text(), lease),), True)


def restoration(keys: Keys, fence: KeyCondition, leader: Leader, lease: int) -> Transaction:
    """Return what has a leader put its key again that is gone, where nobody was elected or named since."""
    conditions = fence, KeyCondition(keys.leader, 0), KeyCondition(keys.successor, 0)
    return Transaction(conditions, (PutKey(keys.leader, leader.text(), lease),))


def hand_over(keys: Keys, fence: KeyCondition, to: str) -> Transaction:
    """Return what takes the leader's key away and names who is to lead next."""
    return Transaction((fence,), (Delete(keys.leader), PutKey(keys.successor, to)), True)
