"""`vsrt cluster`: the store looked at, its keys out and in, and whom switches are to know; over real servers."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from apps.cli.cluster_plan import choose
from apps.cli.main import main
from apps.cluster.etcd import Access, EtcdEngine
from certificates import Authority
from controller.cluster.archive import ArchiveInvalid, archive_of, read_archive, restoring, why_not
from controller.cluster.engine import GrantLease, KeyValue, LeaseGranted, PutKey, ReadPage, Transaction
from controller.cluster.keys import Keys, Leader, Present, read_epoch
from etcd_server import EtcdServer

FABRIC = "commands"
KEYS = Keys(FABRIC)


@pytest.fixture
def policy(own_etcd: EtcdServer, tmp_path: Path) -> Path:
    """A policy whose store is a server of this test's own."""
    return policy_of(tmp_path, own_etcd.endpoint)


def policy_of(directory: Path, endpoints: str, more: str = "") -> Path:
    path = directory / "policy.yaml"
    path.write_text(
        f"version: 1\ncluster:\n  engine: etcd\n  endpoints: {endpoints}\n  fabric: {FABRIC}\n{more}",
        encoding="utf-8",
    )
    return path


def put(server: EtcdServer, *edits: PutKey) -> None:
    engine = EtcdEngine(Access((server.endpoint,)))
    for at in range(0, len(edits), 100):
        engine.ask(Transaction((), edits[at : at + 100], True))
    engine.close()


def keys_of(server: EtcdServer) -> dict[str, str]:
    engine = EtcdEngine(Access((server.endpoint,)))
    page = engine.ask(ReadPage(KEYS.root, limit=10_000))
    engine.close()
    return {held.key: held.value for held in page.held}  # type: ignore[union-attr]


def leads(server: EtcdServer) -> None:
    """Have a leader that lives."""
    engine = EtcdEngine(Access((server.endpoint,)))
    granted = engine.ask(GrantLease(60))
    assert type(granted) is LeaseGranted
    put(server, PutKey(KEYS.leader, Leader("c1", "run", 7, "").text(), granted.lease))


def checked(policy: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[tuple[str, str], dict[str, object]]]:
    status = main(["cluster", "check", "--config", str(policy), "--json"])
    document = json.loads(capsys.readouterr().out)
    assert document["fit"] is (status == 0)
    return status, {(each["check"], each["where"]): each for each in document["findings"]}


# check


def test_members_of_another_fabric_are_told(policy: Path, own_etcd: EtcdServer, capsys: pytest.CaptureFixture[str]):
    leads(own_etcd)
    members = {"c1": {1, 2}, "c2": {2, 3}, "c3": set(), "x1": {4}}
    puts = (
        PutKey(f"{KEYS.members}{name}", Present(name, "run", "", len(dpids), dpids=frozenset(dpids)).text())
        for name, dpids in members.items()
    )
    put(own_etcd, *puts)
    status, found = checked(policy, capsys)
    told = found["switches", f"fabric {FABRIC}"]
    assert (status, told["is_good"]) == (1, False)
    assert told["text"] == "x1 is connected to none of the switches of c1, which leads: is it another fabric?"


def test_a_store_that_is_fit(policy: Path, own_etcd: EtcdServer, capsys: pytest.CaptureFixture[str]):
    leads(own_etcd)
    status, found = checked(policy, capsys)
    where = own_etcd.endpoint
    checks = {"answers", "version", "store", "space", "servers", "compaction", "members"}
    assert {check for check, _ in found} == checks
    assert status == 0 or not found["answers", where]["is_good"], found  # a busy machine may be slow
    assert "c1 leads" in str(found["members", f"fabric {FABRIC}"]["text"])
    assert "fewer than 3" in str(found["servers", where]["text"])
    assert "MB of 2147 MB" in str(found["space", where]["text"])


def test_a_server_that_is_gone_is_named(policy: Path, own_etcd: EtcdServer, capsys: pytest.CaptureFixture[str]):
    policy_of(policy.parent, f"{own_etcd.endpoint} http://127.0.0.1:1")
    status, found = checked(policy, capsys)
    assert status == 1 and not found["answers", "http://127.0.0.1:1"]["is_good"]
    assert found["version", own_etcd.endpoint]["is_good"]
    assert main(["cluster", "check", "--config", str(policy)]) == 1
    assert "NOT FIT" in capsys.readouterr().out


def test_servers_of_two_stores_are_told(
    policy: Path, own_etcd: EtcdServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    other = EtcdServer(tmp_path / "other").start()
    try:
        policy_of(policy.parent, f"{own_etcd.endpoint} {other.endpoint}")
        status, found = checked(policy, capsys)
    finally:
        other.kill()
    told = found["store", "all servers"]
    assert (status, told["is_good"]) == (1, False)
    assert "they are of 2 stores" in str(told["text"])
    assert found["store", own_etcd.endpoint]["is_good"]


def test_a_store_whose_revisions_all_stay_is_told(
    policy: Path, own_etcd: EtcdServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("apps.cli.cluster_check.REVISIONS_BOUND", 3)
    for number in range(5):
        put(own_etcd, PutKey(f"{KEYS.journal}a", str(number)))
    status, found = checked(policy, capsys)
    assert status == 1 and "--auto-compaction-retention" in str(found["compaction", own_etcd.endpoint]["text"])
    engine = EtcdEngine(Access((own_etcd.endpoint,)))
    engine.question("/v3/kv/compaction", {"revision": 4, "physical": True})
    _, found = checked(policy, capsys)
    assert found["compaction", own_etcd.endpoint]["is_good"]


def test_a_store_that_is_full_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    server = EtcdServer(tmp_path / "small", "--quota-backend-bytes", str(1 << 20)).start()
    policy = policy_of(tmp_path, server.endpoint)
    try:
        status, text = 0, ""
        for number in range(400):  # it notices that it is full when it has put on the disk what came together
            put(server, PutKey(f"{KEYS.journal}{number}", "x" * 50_000))
            if number >= 40:
                status, found = checked(policy, capsys)
                text = str(found["space", server.endpoint]["text"])
            if "no more writes" in text:
                break
        assert status == 1 and "no more writes" in text
    finally:
        server.kill()


def test_a_certificate_that_ends_soon_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    authority = Authority(tmp_path)
    served = authority.issue("server", at="IP:127.0.0.1")
    files = ["--cert-file", str(served.certificate), "--key-file", str(served.key)]
    server = EtcdServer(tmp_path / "tls", *files, scheme="https").launch()
    try:
        policy = policy_of(tmp_path, server.endpoint, f"  ca: {authority.certificate}\n")
        found: dict[tuple[str, str], dict[str, object]] = {}
        while ("certificate", server.endpoint) not in found:
            assert server.process is not None and server.process.poll() is None
            _, found = checked(policy, capsys)
        assert "it is valid until" in str(found["certificate", server.endpoint]["text"])
    finally:
        server.kill()


# export and import


def fill(server: EtcdServer, count: int = 300) -> None:
    put(
        server,
        PutKey(KEYS.epoch, "7"),
        *(PutKey(f"{KEYS.journal}host/{n:04}", f"observation {n} {{}}") for n in range(count)),
    )


def test_what_was_exported_is_imported_into_an_empty_store(
    policy: Path, own_etcd: EtcdServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    fill(own_etcd)
    leads(own_etcd)
    before, file = keys_of(own_etcd), tmp_path / "fabric.archive"
    assert main(["cluster", "export", str(file), "--config", str(policy)]) == 0
    assert "301 keys" in capsys.readouterr().out and file.stat().st_mode & 0o777 == 0o600
    own_etcd.set_up_anew()
    assert main(["cluster", "import", str(file), "--config", str(policy)]) == 0
    after = keys_of(own_etcd)
    assert read_epoch(after.pop(KEYS.epoch)) == 8
    assert after == {key: value for key, value in before.items() if key not in (KEYS.epoch, KEYS.leader)}


def test_nothing_is_taken_away_unless_forced(
    policy: Path, own_etcd: EtcdServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    fill(own_etcd, 3)
    file = tmp_path / "fabric.archive"
    assert main(["cluster", "export", str(file), "--config", str(policy), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["keys"] == 4
    put(own_etcd, PutKey(f"{KEYS.journal}later", "1"))
    assert main(["cluster", "import", str(file), "--config", str(policy)]) == 1
    assert "has 5 keys already" in capsys.readouterr().err
    leads(own_etcd)
    assert main(["cluster", "import", str(file), "--config", str(policy)]) == 1
    assert "a controller leads fabric commands" in capsys.readouterr().err
    assert main(["cluster", "import", str(file), "--config", str(policy), "--force", "--json"]) == 0
    after = keys_of(own_etcd)
    assert f"{KEYS.journal}later" not in after and KEYS.leader not in after and len(after) == 4


def test_a_file_that_is_damaged_or_of_another_version_is_refused(
    policy: Path, own_etcd: EtcdServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    fill(own_etcd, 2)
    file = tmp_path / "fabric.archive"
    assert main(["cluster", "export", str(file), "--config", str(policy)]) == 0
    whole = json.loads(file.read_text())
    for change, words in (
        ({"keys": {"a": "b"}}, "digest"),
        ({"records": 3}, "its records are of version 3, and this program reads versions 1 and 2"),
        ({"format": "x"}, "no archive"),
        ({"keys": {"a": 1}}, "no texts"),
        ({"keys": 5}, "no archive"),
    ):
        file.write_text(json.dumps(whole | change))
        capsys.readouterr()
        assert main(["cluster", "import", str(file), "--config", str(policy)]) == 2
        assert words in capsys.readouterr().err
    for missing, words in ((tmp_path / "none", "No such file"), (Path("/dev/full"), "no archive")):
        if missing.name == "full":
            missing = tmp_path / "binary"
            missing.write_bytes(b"\xff\xfe")
        assert main(["cluster", "import", str(missing), "--config", str(policy)]) == 2
        assert words in capsys.readouterr().err


def test_a_store_that_does_not_answer_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    policy = policy_of(tmp_path, "http://127.0.0.1:1")
    assert main(["cluster", "export", str(tmp_path / "x"), "--config", str(policy)]) == 1
    assert "the store gave no answer" in capsys.readouterr().err and not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [("version: 1\n", "cluster.engine: the policy names no store"), ("version: 2\n", "version")],
)
def test_a_policy_without_a_store_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
):
    (tmp_path / "policy.yaml").write_text(text)
    assert main(["cluster", "check", "--config", str(tmp_path / "policy.yaml")]) == 2
    assert words in capsys.readouterr().err


def test_without_a_policy_nothing_is_asked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.delenv("VSRT_CONFIG", raising=False)
    assert main(["cluster", "check"]) == 2
    assert "--config: name the policy file" in capsys.readouterr().err
    assert main(["cluster", "check", "--config", "/nowhere/policy.yaml"]) == 2


def test_an_archive_is_of_its_fabric():
    archive = archive_of("a", 5, [KeyValue("/vsrt/1/a/x", "1", 2), KeyValue("/vsrt/1/a/lead/leader", "me", 3, 9)])
    assert archive.keys == {"x": "1"} and read_archive(archive.text()) == archive
    assert why_not(archive, "a", []) is None
    assert why_not(archive, "b", []) == "it is of fabric a, not of b"
    assert [edit for transaction in restoring(archive, "b", []) for edit in transaction.edits] == [
        PutKey("/vsrt/1/b/x", "1")
    ]
    with pytest.raises(ArchiveInvalid):
        read_archive("")


# plan


def planned(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main(["cluster", "plan", *words]) == 0
    return capsys.readouterr().out.splitlines()


def test_each_switch_is_told_all(capsys: pytest.CaptureFixture[str]):
    words = ("--controller", "10.0.0.1", "--controller", "[fd00::1]:6633", "--monitor", "m1", "--monitor", "fd00::2")
    assert planned(capsys, "s1", "s2", *words) == [
        f"ovs-vsctl set-controller {name} tcp:10.0.0.1:6653 tcp:[fd00::1]:6633 tcp:m1:6653 tcp:[fd00::2]:6653"
        for name in ("s1", "s2")
    ]
    assert planned(capsys, "s1", "--controller", "c:7", "--tls") == ["ovs-vsctl set-controller s1 ssl:c:7"]


def test_some_monitors_each_has_as_many_switches():
    switches, monitors = [f"s{number}" for number in range(100)], [f"m{number}" for number in range(10)]
    chosen = choose(switches, monitors, 3)
    counts = Counter(monitor for known in chosen.values() for monitor in known)
    assert {len(set(known)) for known in chosen.values()} == {3} and set(counts.values()) == {30}
    assert len({tuple(known) for known in chosen.values()}) > 30
    assert choose(switches, monitors, 3) == chosen


def test_the_switches_of_a_topology(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    file = tmp_path / "fabric.json"
    assert main(["topology", "make", "fattree", "--k", "4", "-o", str(file)]) == 0
    capsys.readouterr()
    lines = planned(capsys, "--topology", str(file), "--monitor", "m1", "--monitor", "m2", "--each", "1")
    assert len(lines) == 20
    assert main(["cluster", "plan", "s1", "--controller", "c", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"switches": {"s1": ["tcp:c:6653"]}}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["s1"], "--controller, --monitor: name at least one address"),
        (["--controller", "c"], "SWITCH: name switches"),
        (["s1", "--monitor", "m", "--each", "2"], "--each: 2 of 1 monitors cannot be chosen"),
        (["s1", "--monitor", "m:0"], "--monitor: 'm:0' is no ADDRESS"),
    ],
)
def test_what_cannot_be_planned_is_named(capsys: pytest.CaptureFixture[str], words: list[str], told: str):
    assert main(["cluster", "plan", *words]) == 2
    assert told in capsys.readouterr().err
