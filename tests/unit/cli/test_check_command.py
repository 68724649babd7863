"""`vsrt check` by the socket and by the API: what is asked, what is said of the answers, and the exit status."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("os_ken")

from apps.cli import check_command
from apps.cli.main import main
from apps.registry import TABLE_APPS
from fed_controller import FedController, multicast_documents
from served_dashboard import served
from terminal import on_terminal

TOKEN = "0123456789abcdefghij"
ENTRY = {
    "table": 2,
    "priority": 10000,
    "match": "ip_dst=239.1.1.1",
    "actions": "output:1",
    "cookie": "0x5602000000000001",
}
NONE = {"count": 0, "entries": []}


def told(app: str, dpid: int = 3, **kinds: Any) -> dict[str, Any]:
    """Return the report of a switch."""
    report: dict[str, Any] = {"app": app, "dpid": dpid, "state": "read", "desired": 10, "confirmed": 10, "held": 10}
    report |= {"kept": 0, "pending": 0, "no_room": 0, "refused": 0, "repair": None}
    return {**report, **dict.fromkeys(("missing", "altered", "extra", "foreign"), NONE), **kinds}


def one(entry: dict[str, Any] = ENTRY) -> dict[str, Any]:
    return {"count": 1, "entries": [entry]}


class Switches:
    """What a controller answers: the reports of each app, check by check; the last ones are answered ever after."""

    def __init__(self, controller: FedController) -> None:
        self.controller = controller
        self.reports: dict[str, list[list[dict[str, Any]]]] = {}
        self.findings: list[dict[str, Any]] = []
        self.undeclared: list[dict[str, Any]] = []
        self._numbers: dict[str, int] = {}
        self._under_way: dict[str, list[dict[str, Any]]] = {}
        for app in TABLE_APPS:
            controller.server.actions[f"check-{app}"] = self._begin(app)  # type: ignore[index]
            controller.server.actions[f"check-{app}-report"] = self._report(app)  # type: ignore[index]
        controller.server.actions["check-findings"] = self._find  # type: ignore[index]
        controller.server.actions["check-discovery-findings"] = self._find_undeclared  # type: ignore[index]

    def _begin(self, app: str) -> Any:
        def begin(fields: Any) -> dict[str, Any]:
            asked = {name: value for name, value in fields.items() if name != "by"}
            self.controller.asked.append((app, {name: value for name, value in asked.items() if value is not False}))
            checks = self.reports.get(app, [[]])
            self._under_way[app] = checks.pop(0) if len(checks) > 1 else checks[0]
            self._numbers[app] = self._numbers.get(app, 0) + 1
            return {"number": self._numbers[app], "switches": len(self._under_way[app])}

        return begin

    def _report(self, app: str) -> Any:
        def report(asked: Any) -> dict[str, Any]:
            assert asked["number"] == self._numbers[app]
            after, all_of_them = asked["after"], self._under_way[app]
            part = all_of_them[after : after + 1]
            return {
                "number": asked["number"],
                "switches": len(all_of_them),
                "done": after + len(part) == len(all_of_them),
                "reports": part,
            }

        return report

    def _find(self, _asked: Any) -> dict[str, Any]:
        return {"done": True, "count": len(self.findings), "findings": self.findings}

    def _find_undeclared(self, _asked: Any) -> dict[str, Any]:
        return {"done": True, "count": len(self.undeclared), "findings": self.undeclared}


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FedController]:
    controller = FedController(tmp_path_factory.mktemp("controller") / "vsrt.sock", multicast_documents())
    controller.documents["status"]["status"]["apps"] = ["discovery", "multicast", "alarms"]
    controller.server.actions = dict(controller.server.actions)
    controller.start()
    yield controller
    controller.stop()


@pytest.fixture(scope="module")
def api(controller: FedController) -> Iterator[list[str]]:
    token = controller.path.with_name("token")
    token.write_text(TOKEN + "\n")
    token.chmod(0o600)
    with served(controller.path, token_file=str(token)) as address:
        yield ["--url", address, "--token-file", str(token)]


@pytest.fixture
def switches(controller: FedController, monkeypatch: pytest.MonkeyPatch) -> Switches:
    monkeypatch.setattr(check_command, "SETTLE_S", 0.01)
    monkeypatch.setattr(check_command, "POLL_S", 0.01)
    controller.asked.clear()
    return Switches(controller)


@pytest.fixture(params=["socket", "url"])
def source(request: pytest.FixtureRequest, controller: FedController) -> list[str]:
    return ["--socket", str(controller.path)] if request.param == "socket" else request.getfixturevalue("api")


def test_where_no_switch_was_read_nothing_is_said_to_be_well(
    switches: Switches, source: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    switches.reports = {"discovery": [[]], "multicast": [[]]}
    assert main(["check", *source]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "no switch was read"
    switches.reports = {"discovery": [[told("discovery", state="disconnected")]], "multicast": [[]]}
    assert main(["check", *source]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "no switch was read"


def test_a_clean_fabric_is_status_0(
    switches: Switches, source: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    switches.reports = {
        "discovery": [[told("discovery", 3), told("discovery", 10)]],
        "multicast": [[told("multicast")]],
    }
    assert main(["check", *source]) == 0
    out = capsys.readouterr().out
    assert "leaf10" in out
    assert out.splitlines()[-1] == "everything that was read is as it shall be"
    assert switches.controller.asked == [("discovery", {}), ("multicast", {})]


def test_how_many_switches_were_read_stands_on_the_terminal(
    switches: Switches, source: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = on_terminal(monkeypatch)
    switches.reports = {"discovery": [[told("discovery")]], "multicast": [[told("multicast")]]}
    assert main(["check", *source, "--json"]) == 0
    assert terminal.drew("switches read for discovery")
    assert terminal.drew("switches read for multicast")
    assert json.loads(capsys.readouterr().out)["clean"]


def test_a_bond_that_is_not_declared_is_told_and_is_status_1(
    switches: Switches, source: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    switches.reports = {"discovery": [[told("discovery")]], "multicast": [[told("multicast")]]}
    switches.undeclared = [
        {"kind": "lacp-undeclared", "text": "Ports 3:1, 3:2 receive LACP.", "dpid": 3, "port_no": 1}
    ]
    assert main(["check", *source]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "Ports 3:1, 3:2 receive LACP."


def test_what_differs_is_told_entry_by_entry_and_is_status_1(
    switches: Switches, source: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    altered = one({**ENTRY, "holds": {**ENTRY, "actions": "drop"}})
    strange = one({**ENTRY, "cookie": "0x0000000000000007"})
    switches.reports = {
        "discovery": [[told("discovery", foreign=strange)]],
        "multicast": [[told("multicast", missing=one(), altered=altered, extra=one())]],
    }
    assert main(["check", "--switch", "3", *source]) == 1
    out = capsys.readouterr().out
    assert "missing: table 2, priority 10000, ip_dst=239.1.1.1 -> output:1 (0x5602000000000001)" in out
    assert "altered: table 2, priority 10000, ip_dst=239.1.1.1 -> output:1 (0x5602000000000001), but drop" in out
    assert "extra: " in out and "foreign: " in out and "0x0000000000000007" in out
    assert switches.controller.asked == [("discovery", {"dpid": 3}), ("multicast", {"dpid": 3})]


def test_entries_that_are_foreign_alone_are_clean(switches: Switches, source: list[str]) -> None:
    switches.reports = {"discovery": [[told("discovery", foreign=one())]]}
    assert main(["check", *source]) == 0


def test_a_repair_is_asked_for_where_something_differs_and_looked_at_afterwards(
    switches: Switches, source: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    differs = told("multicast", missing=one())
    switches.reports = {
        "discovery": [[told("discovery")]],
        "multicast": [
            [differs, told("multicast", 10)],
            [{**differs, "repair": "begun"}],
            [told("multicast", pending=1)],
            [told("multicast")],
        ],
    }
    assert main(["check", "--repair", *source]) == 0
    assert "repaired 1 entries" in capsys.readouterr().out
    assert switches.controller.asked.count(("multicast", {"dpid": 3, "repair": True})) == 1
    assert not any("repair" in asked for app, asked in switches.controller.asked if app == "discovery")
    assert switches.controller.asked[-1] == ("multicast", {})


def test_a_repair_of_too_much_wants_force(
    switches: Switches, source: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    differs = told("multicast", missing=one())
    switches.reports = {"multicast": [[differs], [{**differs, "repair": "needs-force"}], [differs]]}
    assert main(["check", "--repair", *source]) == 1
    assert "--force" in capsys.readouterr().out
    switches.reports = {"multicast": [[differs], [{**differs, "repair": "begun"}], [told("multicast")]]}
    assert main(["check", "--repair", "--force", *source]) == 0
    assert ("multicast", {"dpid": 3, "repair": True, "force": True}) in switches.controller.asked


def test_findings_are_told_and_are_status_1(
    switches: Switches, source: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    switches.findings = [{"kind": "file-unreadable", "text": "journal.jsonl cannot be read: it is a folder."}]
    assert main(["check", *source]) == 1
    assert "journal.jsonl cannot be read" in capsys.readouterr().out


def test_a_switch_that_could_not_be_read_is_told_and_is_status_1(
    switches: Switches, source: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    switches.reports = {"multicast": [[{"app": "multicast", "dpid": 3, "state": "unanswered"}]]}
    assert main(["check", *source]) == 1
    assert "the switch did not tell its entries in time" in capsys.readouterr().out


def test_a_switch_that_is_being_read_is_asked_again(switches: Switches, source: list[str]) -> None:
    reading = {"app": "multicast", "dpid": 3, "state": "being-read"}
    switches.reports = {"multicast": [[reading], [reading], [told("multicast")]]}
    assert main(["check", *source]) == 0


def test_as_json_there_is_one_document(
    switches: Switches, source: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    switches.reports = {"multicast": [[told("multicast", extra=one())]]}
    assert main(["check", "--json", *source]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["clean"] is False
    assert [table["extra"]["count"] for table in document["tables"]] == [1]
    assert document["repairs"] == [] and document["findings"] == []


def test_words_that_make_no_sense_are_status_2(switches: Switches, source: list[str]) -> None:
    assert main(["check", "--switch", "nosuch", *source]) == 2
    assert switches.controller.asked == []


@pytest.mark.parametrize("switch", ["77", "0x4d", "000000000000004d"])
def test_a_switch_that_nobody_knows_is_status_2(
    switches: Switches, source: list[str], capsys: pytest.CaptureFixture[str], switch: str
) -> None:
    assert main(["check", "--switch", switch, *source]) == 2
    assert f"--switch: no switch {switch} is known" in capsys.readouterr().err
    assert switches.controller.asked == []


def test_a_known_switch_that_is_away_is_told_as_such_and_is_status_1(
    switches: Switches, source: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    switches.reports = {app: [[told(app, state="disconnected")]] for app in ("discovery", "multicast")}
    assert main(["check", "--switch", "3", *source]) == 1
    assert "the switch is not connected" in capsys.readouterr().out
