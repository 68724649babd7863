"""CPU and memory of switches from a database that speaks JSON-RPC."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from apps.ovsdb import Ovsdb, OvsdbFault, SwitchUse

Serve = Callable[..., str]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Serve the given answers, one per connection, in pieces; return the target."""
    listener = socket.socket(socket.AF_UNIX)

    def start(*answers: bytes) -> str:
        listener.bind(str(tmp_path / "db.sock"))
        listener.listen()

        def run() -> None:
            for answer in answers:
                connection, _ = listener.accept()
                with connection:
                    question = json.loads(connection.recv(65536))
                    assert question["params"][0] == "Open_vSwitch"
                    for start in range(0, len(answer), 50):
                        connection.sendall(answer[start : start + 50])

        threading.Thread(target=run, daemon=True).start()
        return f"unix:{tmp_path / 'db.sock'}"

    yield start
    listener.close()


def answer(statistics: dict[str, str], *dpids: str) -> bytes:
    rows = [{"statistics": ["map", [[key, value] for key, value in statistics.items()]]}]
    bridges = [{"datapath_id": dpid} for dpid in dpids] + [{"datapath_id": ["set", []]}]
    return json.dumps({"id": 1, "error": None, "result": [{"rows": rows}, {"rows": bridges}]}).encode()


def sample(busy_ms: int, age_ms: int) -> dict[str, str]:
    process = f"900000,50000,{busy_ms},0,{age_ms + 5},{age_ms}"
    return {"cpu": "4", "memory": "1000,700,200,0,0", "process_ovs-vswitchd": process}


def test_cpu_is_taken_between_two_readings(serve: Serve):
    ovsdb = Ovsdb(
        serve(answer(sample(1000, 60_000), "00000000000000a1", "0000000000000002"), answer(sample(3000, 70_000)))
    )
    assert ovsdb.read() == SwitchUse((0xA1, 2), None, 50.0)
    use = ovsdb.read()
    assert use.cpu_pct == pytest.approx(100 * 2000 / 10_000 / 4)


def test_a_restart_of_the_switch_gives_no_figure(serve: Serve):
    ovsdb = Ovsdb(serve(answer(sample(5000, 60_000)), answer(sample(10, 500)), answer(sample(30, 1500))))
    ovsdb.read()
    assert ovsdb.read().cpu_pct is None
    assert ovsdb.read().cpu_pct == pytest.approx(100 * 20 / 1000 / 4)


def test_a_switch_that_keeps_no_statistics_has_no_figures(serve: Serve):
    assert Ovsdb(serve(answer({}, "1"))).read() == SwitchUse((1,), None, None)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b'{"result": [', b'{"result": []}', b'{"error": "no"}', b"[]", b"7", answer({"memory": "a,b,c"})],
)
def test_an_answer_that_makes_no_sense_is_a_fault(serve: Serve, content: bytes):
    with pytest.raises(OvsdbFault):
        Ovsdb(serve(content)).read()


def test_nobody_there_is_a_fault(tmp_path: Path):
    with pytest.raises(OvsdbFault, match="No such file"):
        Ovsdb(f"unix:{tmp_path / 'nothing'}").read()


@pytest.mark.parametrize(
    "target", ["", "unix:", "tcp:host", "tcp::6640", "tcp:host:x", "tcp:host:0", "ssl:host:6640"]
)
def test_a_target_that_is_none_is_refused(target: str):
    with pytest.raises(ValueError, match="neither"):
        Ovsdb(target)
