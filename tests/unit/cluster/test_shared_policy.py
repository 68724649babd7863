"""The policy that controllers share: who puts it into the store, and what counts where a file says something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.cluster.shared_policy import POLICY_BYTES_BOUND, NotLeading, SharedPolicy, read_record
from apps.policy_file import PolicyReading
from controller.cluster.effects import TellOperators
from controller.cluster.engine import Committed, KeyCondition, KeyPage, PutKey, ReadPage, Transaction
from controller.cluster.keys import Keys
from controller.cluster.memory_engine import MemoryEngine, MemoryStore
from controller.config import load_policy
from controller.config.shared_text import digest_of, merged_text, shared_text
from controller.snapshot.events import State

FABRIC = "fabric"
KEYS = Keys(FABRIC)
POLICY = """\
version: 1  # of the file
default: allow
rules:
  - {name: "5", groups: [239.0.0.0/8], role: any, hosts: [10.0.0.0/8], action: deny}
monitor: {interval_s: 7}
"""
OTHER = POLICY.replace("deny", "allow").replace("7", "8")
CLUSTER = "cluster: {engine: etcd, endpoints: 'http://10.0.0.1:2379'}\n"


def reading_of(text: str, number: int = 1) -> PolicyReading:
    return PolicyReading(load_policy(text), text, 0.0, (), number)


class Machine:
    """One controller's part, with a file of its own."""

    def __init__(self, store: MemoryStore, text: str) -> None:
        self.engine = MemoryEngine(store)
        self.reading = reading_of(text)
        self.told: list[TellOperators] = []
        self.policy = SharedPolicy(
            self.engine.ask, FABRIC, Path("policy.yaml"), lambda: self.reading, self.told.append
        )

    def lead(self, epoch: str) -> KeyCondition:
        """Have an epoch begin, and return what fences its writes."""
        done = self.engine.ask(Transaction((), (PutKey(KEYS.epoch, epoch),)))
        assert type(done) is Committed
        return KeyCondition(KEYS.epoch, done.revision)

    def stored(self) -> str | None:
        page = self.engine.ask(ReadPage(KEYS.policy))
        assert type(page) is KeyPage
        return read_record(page.held[0].value) if page.held else None


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def test_what_is_shared_is_all_but_a_machines_own_sections():
    shared = shared_text(POLICY + CLUSTER)
    assert load_policy(shared) == load_policy(POLICY.replace("monitor: {interval_s: 7}\n", ""))
    assert shared_text(shared) == shared == shared_text(POLICY.replace("7", "9"))
    assert shared != shared_text(OTHER)
    assert load_policy(merged_text(OTHER + CLUSTER, shared)) == load_policy(POLICY.replace("7", "8") + CLUSTER)


@pytest.mark.parametrize("text", ["", "a list: [", "- one\n- two\n", "text"])
def test_what_is_no_policy_is_not_shared(text: str):
    with pytest.raises(ValueError):
        shared_text(text)


@pytest.mark.parametrize("value", ["", "0" * 64, "[]", '{"text": "version: 1"}', '{"text": 1, "digest": "x"}'])
def test_a_record_that_makes_no_sense_is_none(value: str):
    assert read_record(value) is None


def test_the_first_leader_has_its_policy_known_and_the_next_one_goes_by_it(store: MemoryStore):
    first, second = Machine(store, POLICY), Machine(store, OTHER + CLUSTER)
    assert first.policy.taken_over(first.lead("1")) is None
    assert first.stored() == shared_text(POLICY)
    taken = second.policy.taken_over(second.lead("2"))
    assert taken is not None
    assert taken.policy == load_policy(POLICY.replace("7", "8") + CLUSTER)
    assert second.stored() == shared_text(POLICY)
    assert Machine(store, POLICY).policy.taken_over(second.lead("3")) is None


def test_a_value_of_a_version_before_is_written_anew(store: MemoryStore):
    one = Machine(store, POLICY)
    one.engine.ask(Transaction((), (PutKey(KEYS.policy, digest_of(POLICY)),)))
    assert one.policy.taken_over(one.lead("1")) is None
    assert one.stored() == shared_text(POLICY)


def test_a_policy_is_in_force_when_the_store_has_it(store: MemoryStore):
    one = Machine(store, POLICY)
    assert one.policy.admits(reading_of(OTHER, 2)) is None  # another one leads: the file is this machine's matter
    assert one.stored() is None
    one.policy.taken_over(one.lead("1"))
    store.be_silent(5.0)
    for _ in range(2):
        assert "the cluster's store does not take it" in (one.policy.admits(reading_of(OTHER, 3)) or "")
    assert [told.kind for told in one.told] == ["policy-unshared"]
    store.advance(10.0)
    assert one.policy.admits(reading_of(OTHER, 3)) is None
    assert one.stored() == shared_text(OTHER)
    one.lead("2")
    assert one.policy.admits(reading_of(POLICY, 4)) == "this controller leads no more"
    assert one.stored() == shared_text(OTHER)


def test_who_leads_no_more_takes_nothing_over(store: MemoryStore):
    one = Machine(store, POLICY)
    fence = one.lead("1")
    one.lead("2")
    with pytest.raises(NotLeading):
        one.policy.taken_over(fence)
    assert one.policy.fence is None


def test_a_policy_that_is_too_large_is_not_shared(store: MemoryStore):
    one = Machine(store, POLICY)
    one.policy.taken_over(one.lead("1"))
    name = "n" * 60
    rule = f"  - {{name: {name}, groups: [239.0.0.0/8], role: any, hosts: [10.0.0.0/8], action: deny}}\n"
    large = "version: 1\ndefault: allow\nrules:\n" + rule * (POLICY_BYTES_BOUND // 100)
    assert "larger than" in (one.policy.admits(one.reading._replace(text=large, number=2)) or "")
    assert one.stored() == shared_text(POLICY)


def test_what_a_later_version_wrote_leaves_the_own_file_in_force(store: MemoryStore):
    one = Machine(store, POLICY)
    text = shared_text("version: 1\nunheard_of: {setting: 1}\n")
    put = PutKey(KEYS.policy, f'{{"digest": "{digest_of(text)}", "text": "{text}"}}'.replace("\n", "\\n"))
    one.engine.ask(Transaction((), (put,)))
    assert one.policy.taken_over(one.lead("1")) is None
    assert [told.kind for told in one.told] == ["policy-unreadable"]
    assert one.stored() == text


def test_a_file_that_differs_is_told_when_that_begins_and_ends(store: MemoryStore):
    first, second = Machine(store, POLICY), Machine(store, OTHER)
    second.policy.look()  # nothing is shared yet
    first.policy.taken_over(first.lead("1"))
    for machine in (first, second, second):
        machine.policy.look()
    second.reading = reading_of(POLICY + CLUSTER, 2)
    store.be_silent(1.0)
    second.policy.look()
    store.advance(2.0)
    second.policy.look()
    assert [(told.kind, told.state) for told in second.told] == [
        ("policy-differs", State.RAISED),
        ("policy-differs", State.CLEARED),
    ]
    assert not first.told
