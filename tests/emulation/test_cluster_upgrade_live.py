"""Controllers of two versions share a fabric while they are upgraded one after the other; of others they refuse it.

Programs of other versions are this one, told by its environment that its records are of another version.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from apps.emulation.cluster import FABRIC, wait_that
from apps.emulation.controller import REPOSITORY
from apps.status_client import query
from controller.cluster.engine import Committed, PutKey, Transaction
from controller.cluster.journal import record_version
from controller.cluster.keys import Keys
from controller.cluster.versions import RECORDS
from several_controllers import GROUP, SETTLED_S, Clustered, follower_name

pytestmark = pytest.mark.emulation

FRAMEWORK = "os-ken"

RAISE_S = 8.0
"""How long members have read later records before these are written: more than a restart takes."""

RAISED = f"All members read records of version {RECORDS}"


def test_controllers_are_upgraded_one_after_the_other(clustered: Callable[..., Clustered], tmp_path: Path) -> None:
    """Both write the version before until neither is of it; then records of both versions are beside each other."""
    net = clustered(of_cluster={"env": program(tmp_path, RECORDS - 1)})
    other = follower_name(net)
    assert versions(net) == {RECORDS - 1}
    upgrade(net, other, tmp_path)
    now = net.wait_leads(other)
    net.join("h5")
    net.cluster.wait_journal(lambda keys: f"heard/{GROUP}/{net.fabric.dpid('s3')}" in keys)
    assert versions(net) == {RECORDS - 1}
    upgrade(net, net.before.member, tmp_path)
    net.cluster.members[now.member].wait_log(RAISED, SETTLED_S)
    net.join("h6")
    net.cluster.wait_journal(lambda _keys: versions(net) == {RECORDS - 1, RECORDS})
    net.cluster.members[now.member].kill()
    then = net.cluster.wait_leader(now.epoch)
    net.wait_in_sync(net.cluster.members[then.member])
    net.wait_group(net.cluster.members[then.member], "members", 3)
    assert "cannot be read" not in net.cluster.members[then.member].log()
    net.check_nothing_lost()


def test_one_of_a_version_before_that_comes_back_is_written_what_it_reads(
    clustered: Callable[..., Clustered], tmp_path: Path
) -> None:
    net = clustered(of_cluster={"env": program(tmp_path)})
    other = follower_name(net)
    net.leader.wait_log(RAISED, SETTLED_S)
    net.join("h5")
    net.cluster.wait_journal(lambda _keys: RECORDS in versions(net))
    upgrade(net, other, tmp_path, RECORDS - 1)
    net.cluster.wait_journal(lambda _keys: versions(net) == {RECORDS - 1})
    key = f"{Keys(FABRIC).journal}heard/{GROUP}/{net.fabric.dpid('s3')}"
    with closing(net.cluster.store.engine()) as engine:
        of_later = PutKey(key, value_of(net, key).removesuffix("}") + ',"later":{"of":[7]}}')
        assert type(engine.ask(Transaction((), (of_later,)))) is Committed
    net.wait_leads(other)
    net.wait_group(net.cluster.members[other], "members", 2)
    net.cluster.members[other].wait_log("fields that this version does not know (heard: later)", SETTLED_S)
    net.join("h6")
    wait_that("it has written the switch's members", lambda: value_of(net, key).count('"member"') == 2, SETTLED_S)
    assert '"later":{"of":[7]}' in value_of(net, key)
    assert "cannot be read" not in net.cluster.members[other].log()
    net.check_nothing_lost()


def test_records_that_a_program_cannot_read_keep_it_from_the_lead(
    clustered: Callable[..., Clustered], tmp_path: Path
) -> None:
    net = clustered()
    other = follower_name(net)
    upgrade(net, other, tmp_path, RECORDS + 2, wait=False)
    follower = net.cluster.members[other]
    text = f"records of version {RECORDS - 1}, and this program reads versions {RECORDS + 1} and {RECORDS + 2}"
    follower.wait_log(text, SETTLED_S)
    wait_that(f"{other} is no member", lambda: other not in names(net), SETTLED_S)
    wait_that("it hands nothing over", lambda: "refused" in query(net.leader.socket, {"do": "hand-over"}), SETTLED_S)
    assert net.cluster.leader() == net.before
    net.join("h5")
    net.check_nothing_lost()


def program(directory: Path, version: int = RECORDS) -> dict[str, str]:
    """Return the environment of a program whose records are of a version, and which waits less for others."""
    path = directory / f"records-{version}"
    path.mkdir(exist_ok=True)
    lines = (
        "import controller.cluster.versions as versions",
        f"versions.RECORDS = {version}",
        f"versions.RAISE_S = {RAISE_S}",
    )
    (path / "sitecustomize.py").write_text("\n".join(lines) + "\n")
    return {"PYTHONPATH": f"{path}:{REPOSITORY}"}


def upgrade(net: Clustered, name: str, directory: Path, version: int = RECORDS, *, wait: bool = True) -> None:
    """Start another program in the place of a member, and wait until it takes part again."""
    member = net.cluster.members[name]
    member.stop()
    member.env |= program(directory, version)
    member.start()
    if wait:
        wait_that(f"{name} takes part again", lambda: name in names(net), SETTLED_S)


def names(net: Clustered) -> set[str]:
    """Return who is a member, as the store has it."""
    prefix = Keys(FABRIC).members
    return {held.key.removeprefix(prefix) for held in net.cluster.store.read(prefix).held}


def value_of(net: Clustered, key: str) -> str:
    """Return what a key of the store holds."""
    (held,) = (held for held in net.cluster.store.read(key).held if held.key == key)
    return held.value


def versions(net: Clustered) -> set[int]:
    """Return the versions of the records in the journal."""
    page = net.cluster.store.read(Keys(FABRIC).journal)
    return {record_version(held.value) for held in page.held}
