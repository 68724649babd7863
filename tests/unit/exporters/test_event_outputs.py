"""Events in the JSON log and at a syslog daemon."""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.dashboard.lists import GRAVITIES
from apps.exporters import rfc5424, syslog
from apps.exporters.event_log import EventLogFile
from apps.exporters.event_sinks import SYSLOG_SEVERITY, EventLogSink, SyslogSink
from apps.exporters.settings import EventLogSettings, SyslogSettings
from apps.exporters.syslog import DaemonAddress
from apps.system import system_socket
from controller.config.terms import SEVERITIES
from controller.performance.events import EventState, PortEvent, PortSeverity
from patience import wait_until

TIME_S = 1_700_002_800.25
MESSAGE = re.compile(
    rb"<(?P<pri>\d{1,3})>1 (?P<time>\S+) (?P<host>[!-~]{1,255}) (?P<app>[!-~]{1,48}) (?P<pid>[!-~]{1,128}) "
    rb'(?P<id>[!-~]{1,32}) \[(?P<sd_id>[!-~]{1,32})(?P<data>(?: [!-~]{1,32}="(?:[^"\\\]]|\\["\\\]])*")*)\] '
    rb"\xef\xbb\xbf(?P<text>.*)",
    re.S,
)
PARAMETER = re.compile(r' (\S+?)="((?:[^"\\\]]|\\.)*)"')


def event(**changes: Any) -> PortEvent:
    made = PortEvent(TIME_S, 1, 2, "rx_crc_err", PortSeverity.WARNING, 12.5, 10.0, EventState.RAISED)
    return made._replace(**changes)


def parse(message: bytes) -> tuple[dict[str, str], dict[str, str]]:
    """The fields of an RFC 5424 message, and the parameters of its structured data."""
    match = MESSAGE.fullmatch(message)
    assert match is not None, message
    fields = {name: value.decode() for name, value in match.groupdict().items()}
    return fields, {name: re.sub(r"\\(.)", r"\1", value) for name, value in PARAMETER.findall(fields["data"])}


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[socket.socket]:
    """A syslog daemon's Unix socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(str(tmp_path / "log"))
        server.settimeout(10)
        yield server


@pytest.fixture
def open_syslog(tmp_path: Path, fabric: Any, logger: logging.Logger) -> Iterator[Callable[..., SyslogSink]]:
    opened: list[SyslogSink] = []

    def make(target: str = str(tmp_path / "log"), **settings: Any) -> SyslogSink:
        opened.append(SyslogSink(SyslogSettings(target, **settings), fabric.ports, logger))
        return opened[-1]

    yield make
    for sink in opened:
        sink.close()


def test_an_event_becomes_an_rfc_5424_message(daemon: socket.socket, open_syslog: Callable[..., SyslogSink]) -> None:
    open_syslog(facility=16).event(event(suppressed=3))
    fields, data = parse(daemon.recv(4096))
    assert fields["pri"] == str(16 * 8 + rfc5424.SyslogSeverity.WARNING)
    assert fields["time"] == "2023-11-14T23:00:00.250000Z"
    assert (fields["app"], fields["id"], fields["pid"]) == ("vsrt", "rx_crc_err", str(os.getpid()))
    assert fields["text"] == (
        "Port 1:2 receives 12.5 frames with a wrong CRC a second, more than 10: suspect its cable or transceiver."
        " Earlier events of the port that were not told: 3."
    )
    assert data == {
        "state": "raised",
        "severity": "warning",
        "dpid": "1",
        "port_no": "2",
        "port": "s1-eth2",
        "class": "tor",
        "counter": "rx_crc_err",
        "rate": "12.5",
        "threshold": "10.0",
        "suppressed": "3",
    }


@pytest.mark.parametrize(
    ("severity", "state", "syslog"),
    [
        (PortSeverity.INFO, EventState.RAISED, 6),
        (PortSeverity.WARNING, EventState.RAISED, 4),
        (PortSeverity.CRITICAL, EventState.RAISED, 2),
        (PortSeverity.CRITICAL, EventState.CLEARED, 5),
    ],
)
def test_the_priority_follows_from_the_severity(
    daemon: socket.socket,
    open_syslog: Callable[..., SyslogSink],
    severity: PortSeverity,
    state: EventState,
    syslog: int,
) -> None:
    open_syslog(least=PortSeverity.INFO).event(event(severity=severity, state=state))
    assert parse(daemon.recv(4096))[0]["pri"] == str(3 * 8 + syslog)


def test_only_significant_events_are_sent(daemon: socket.socket, open_syslog: Callable[..., SyslogSink]) -> None:
    sink = open_syslog(least=PortSeverity.CRITICAL)
    sink.event(event(severity=PortSeverity.WARNING, counter="rx_errors"))
    sink.event(event(severity=PortSeverity.CRITICAL, counter="tx_errors"))
    assert parse(daemon.recv(4096))[0]["id"] == "tx_errors"
    assert sink.state().totals == {"sent": 1, "suppressed": 0}


def test_a_storm_of_events_is_bounded_and_counted(
    daemon: socket.socket, open_syslog: Callable[..., SyslogSink]
) -> None:
    sink = open_syslog(events_per_s=5.0)
    for _ in range(2000):
        sink.event(event())
    totals = sink.state().totals
    assert 5 <= totals["sent"] < 100
    assert totals["sent"] + totals["suppressed"] == 2000


def test_by_udp(open_syslog: Callable[..., SyslogSink]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(10)
        open_syslog(f"127.0.0.1:{server.getsockname()[1]}").event(event())
        assert parse(server.recv(4096))[0]["id"] == "rx_crc_err"


def test_a_daemon_that_is_away_is_shown_and_found_again(
    tmp_path: Path, open_syslog: Callable[..., SyslogSink], caplog: pytest.LogCaptureFixture
) -> None:
    sink = open_syslog()
    sink.event(event())
    assert "No such file" in sink.state().faults[0]
    for _ in range(2):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
            server.bind(str(tmp_path / "log"))
            sink.event(event())
            assert parse(server.recv(4096))
        assert not sink.state().faults
        (tmp_path / "log").unlink()
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]


def test_a_daemon_that_does_not_read_holds_nobody_up(
    daemon: socket.socket, open_syslog: Callable[..., SyslogSink]
) -> None:
    sink = open_syslog(events_per_s=1e6)
    while not sink.state().faults:
        sink.event(event())
    assert sink.state().failures == 1
    daemon.recv(4096)
    sink.event(event())
    assert not sink.state().faults


@pytest.mark.parametrize("target", ["", "host", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:x", "no..name:514"])
def test_a_target_that_makes_no_sense_is_named(target: str) -> None:
    with pytest.raises(ValueError, match=re.escape(repr(target))):
        DaemonAddress(target)


class Resolver:
    """Tells the address of a name once it may, and until then that it has none."""

    def __init__(self) -> None:
        self.asked, self.may_answer = threading.Semaphore(0), threading.Semaphore(0)
        self.port: int | None = None

    def getaddrinfo(self, host: str, port: int, *, flags: int = 0, **_options: Any) -> Any:
        """As that of sockets."""
        if not flags & socket.AI_NUMERICHOST:
            self.asked.release()
            assert self.may_answer.acquire(timeout=10)
            if self.port is not None:
                return [(socket.AF_INET, socket.SOCK_DGRAM, 17, "", ("127.0.0.1", self.port))]
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")


def test_a_name_is_not_waited_for_and_found_as_soon_as_somebody_knows_it(
    open_syslog: Callable[..., SyslogSink], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    resolver = Resolver()
    monkeypatch.setattr(system_socket, "getaddrinfo", resolver.getaddrinfo)
    monkeypatch.setattr(syslog, "ASK_AGAIN_S", 0.001)
    sink = open_syslog("logs.example:514")
    assert resolver.asked.acquire(timeout=10)
    sink.event(event())
    told = "syslog at logs.example:514: its address is not known yet"
    state = sink.state()
    assert (state.faults, state.failures, state.totals["sent"]) == ((told,), 1, 0)
    resolver.may_answer.release()
    assert resolver.asked.acquire(timeout=10)
    sink.event(event())
    assert "Temporary failure in name resolution" in sink.state().faults[0]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(10)
        resolver.port = server.getsockname()[1]
        resolver.may_answer.release()
        wait_until(lambda: not sink.state().faults, os.getpid(), 10)
        sink.event(event())
        assert parse(server.recv(4096))[0]["id"] == "rx_crc_err"
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]


def test_a_name_that_nobody_knows_is_told_before_there_is_anything_to_send(
    open_syslog: Callable[..., SyslogSink], monkeypatch: pytest.MonkeyPatch
) -> None:
    resolver = Resolver()
    monkeypatch.setattr(system_socket, "getaddrinfo", resolver.getaddrinfo)
    sink = open_syslog("logs.example:514")
    resolver.may_answer.release()
    wait_until(lambda: sink.state().faults, os.getpid(), 10)
    assert sink.state().faults == ("syslog at logs.example:514: Temporary failure in name resolution",)
    assert sink.state().failures == 1


@given(
    st.text(),
    st.text(),
    st.text(),
    st.text(max_size=300),
    st.dictionaries(st.text(min_size=1), st.text(), max_size=4),
)
def test_any_message_is_well_formed_and_bounded(
    text: str, host: str, message_id: str, app: str, data: dict[str, str]
) -> None:
    encoded = rfc5424.message(
        text,
        severity=rfc5424.SyslogSeverity.NOTICE,
        facility=23,
        at_s=TIME_S,
        host=host,
        app=app,
        pid=7,
        message_id=message_id,
        data_id="port@32473",
        data=data,
    )
    fields, parameters = parse(encoded)
    assert len(encoded) <= rfc5424.MAX_BYTES
    assert "\n" not in encoded.decode()
    assert fields["pri"] == "189"
    assert len(PARAMETER.findall(fields["data"])) == len(data) >= len(parameters)


def test_a_facility_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match="24"):
        rfc5424.message(
            "", severity=rfc5424.SyslogSeverity.DEBUG, facility=24, at_s=0, host="h", app="a", pid=1, message_id="m",
            data_id="d", data={},
        )  # fmt: skip


def test_the_log_has_one_object_per_line(fabric: Any, tmp_path: Path, logger: logging.Logger) -> None:
    sink = EventLogSink(tmp_path / "state" / "events.jsonl", EventLogSettings(), fabric.ports, logger)
    sink.event(event())
    sink.event(event(state=EventState.CLEARED, rate=float("nan"), dpid=9, severity=PortSeverity.INFO))
    sink.close()
    first, second = map(json.loads, (tmp_path / "state" / "events.jsonl").read_text().splitlines())
    assert first == {
        "time": TIME_S,
        "state": "raised",
        "severity": "warning",
        "dpid": 1,
        "port_no": 2,
        "port": "s1-eth2",
        "class": "tor",
        "counter": "rx_crc_err",
        "rate": 12.5,
        "threshold": 10.0,
        "suppressed": 0,
        "lasted_s": None,
    }
    assert (second["state"], second["rate"], second["port"]) == ("cleared", None, "")
    assert sink.state().totals == {"written": 2, "dropped": 0}


def log_numbers(path: Path) -> list[int]:
    return [json.loads(line)["number"] for line in path.read_text().splitlines()]


def test_the_log_keeps_to_its_size(tmp_path: Path, logger: logging.Logger) -> None:
    path = tmp_path / "events.jsonl"
    for number in range(40):
        log = EventLogFile(path, EventLogSettings(max_bytes=100, files=3), logger)
        log.add({"number": number})
        log.close()
    files = [tmp_path / "events.jsonl.2", tmp_path / "events.jsonl.1", path]
    assert sorted(tmp_path.iterdir()) == sorted(files)
    assert all(file.stat().st_size <= 100 for file in files)
    kept = [number for file in files for number in log_numbers(file)]
    assert kept == list(range(kept[0], 40))
    assert len(kept) > 8


def test_a_torn_line_of_an_earlier_process_spoils_no_other(tmp_path: Path, logger: logging.Logger) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"number":0}\n{"numb')
    log = EventLogFile(path, EventLogSettings(), logger)
    log.add({"number": 1})
    log.close()
    assert path.read_text().splitlines() == ['{"number":0}', '{"numb', '{"number":1}']


def test_a_log_that_cannot_be_written_keeps_the_newest_and_resumes(tmp_path: Path, logger: logging.Logger) -> None:
    blocked = tmp_path / "state"
    blocked.write_text("a file where a directory should be")
    log = EventLogFile(blocked / "events.jsonl", EventLogSettings(backlog_events=3), logger)
    for number in range(5):
        log.add({"number": number})
    while not log.fault.text:
        log.add({"number": 5})
    assert str(blocked) in log.fault.text
    blocked.unlink()
    log.add({"number": 6})
    log.close()
    numbers = log_numbers(blocked / "events.jsonl")
    assert len(numbers) == 3
    assert numbers[-1] == 6
    assert log.dropped > 0
    assert log.fault.text is None


def test_severities_have_the_same_words_and_order_everywhere() -> None:
    assert tuple(severity.label for severity in PortSeverity) == SEVERITIES == GRAVITIES
    assert tuple(SYSLOG_SEVERITY) == tuple(PortSeverity)
    assert sorted(SYSLOG_SEVERITY.values(), reverse=True) == list(SYSLOG_SEVERITY.values())
