"""Tokens of viewers and operators: who may read and write, by which name, over what, and with how many guesses."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from apps.dashboard.guesses import Guesses
from apps.dashboard.limits import ServerLimits
from apps.dashboard.server import DashboardServer
from apps.dashboard.settings import ServerSettings
from apps.dashboard.tokens import digest
from apps.tls_files import SettingsInvalid

from .conftest import Dashboard

ANN, BOB, EVE = "ann-reads-and-writes", "bob-reads-and-writes", "eve-may-read-alone"
RELOAD = "/policy/reload"


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def write_private(path: Path, text: str) -> Path:
    """Put a file in its place at once, as those do who rotate secrets."""
    made = path.with_suffix(".new")
    made.touch(mode=0o600)
    made.write_text(text)
    made.rename(path)
    return path


def token_files(directory: Path) -> dict[str, str]:
    operators = write_private(directory / "operators", f"# night shift\n\nann {ANN}\nbob@noc.example {BOB}\n")
    viewers = write_private(directory / "viewers", f"eve {EVE}\n")
    return {"token_file": str(operators), "read_token_file": str(viewers)}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    return token_files(tmp_path)


@pytest.fixture(scope="module")
def closed_url(settings: ServerSettings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a server is of which nobody reads without a token, for requests that it refuses."""
    found = Dashboard(replace(settings, **token_files(tmp_path_factory.mktemp("tokens"))), ServerLimits())
    found.client.headers.update(bearer(EVE))
    found.wait_until(lambda: found.get("/status")["connected"])
    yield found.url
    found.close()


@pytest.fixture
def closed(start: Callable[..., Any], files: dict[str, str]) -> Any:
    """A server of which nobody reads without a token."""
    found = start(**files)
    found.client.headers.update(bearer(EVE))
    found.wait_until(lambda: found.get("/status")["connected"])
    return found


@pytest.mark.parametrize(
    "path", ["/status", "/switches", "/switches/1", "/stream", "/openapi.json", "/no-such-thing"]
)
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_no_read_goes_without_a_token_where_they_need_one(closed_url: str, path: str, method: str) -> None:
    for headers in ({}, bearer("nobody-has-this-token"), {"Authorization": f"Basic {EVE}"}):
        answer = httpx.request(method, f"{closed_url}/api/v1{path}", headers=headers, trust_env=False)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert b"switch" not in answer.content


def test_the_page_itself_is_open(closed: Any) -> None:
    for path in ("/", "/static/js/main.js", "/favicon.ico"):
        assert httpx.get(f"{closed.url}{path}", trust_env=False).status_code in (200, 308)


def test_viewers_and_operators_read(closed: Any) -> None:
    for token in (EVE, ANN, BOB):
        assert closed.client.get("/switches", headers=bearer(token)).json()["total"] == 2
    kind, data = next(closed.events("?sections=switches"))
    assert (kind, len(data["sections"]["switches"])) == ("snapshot", 2)
    status = closed.get("/status")["dashboard"]
    assert (status["writes"], status["reads_need_token"]) == (True, True)


def test_the_description_says_that_reads_need_a_token(closed: Any) -> None:
    described = closed.get("/openapi.json")
    schemes = described["components"]["securitySchemes"]
    assert {name: (scheme["type"], scheme["scheme"]) for name, scheme in schemes.items()} == {
        "token": ("http", "bearer"),
        "read_token": ("http", "bearer"),
    }
    for methods in described["paths"].values():
        for method, operation in methods.items():
            assert operation["security"] == [{"read_token" if method == "get" else "token": []}]


def test_a_viewer_writes_nothing(closed: Any, controller: Any) -> None:
    controller.asked.clear()
    answer = closed.write("POST", RELOAD, token=EVE)
    assert (answer.status_code, answer.json()["reason"]) == (403, "viewer")
    assert "eve" in answer.json()["detail"]
    assert controller.asked == []
    closed.wait_refused("viewer", 1)


@pytest.mark.parametrize(("token", "name"), [(ANN, "ann"), (BOB, "bob@noc.example")])
@pytest.mark.parametrize("path", [f"POST {RELOAD}", "PUT /alarms/x/acknowledgement"])
def test_the_controller_is_told_the_name_of_who_asks(
    closed: Any, controller: Any, caplog: pytest.LogCaptureFixture, token: str, name: str, path: str
) -> None:
    caplog.set_level(logging.INFO)
    method, _, rest = path.partition(" ")
    assert closed.write(method, rest, token=token).status_code == 200
    assert controller.asked.pop()["by"] == name
    closed.wait_until(
        lambda: any(
            record.name == "vsrt.dashboard.access" and f" {name} {method} " in record.getMessage()
            for record in caplog.records
        )
    )


def test_nobody_asks_in_the_name_of_somebody_else(closed: Any, controller: Any) -> None:
    controller.asked.clear()
    answer = closed.write("PUT", "/alarms/x/acknowledgement?by=somebody-else", token=ANN)
    assert (answer.status_code, answer.json()["field"]) == (422, "by")
    assert controller.asked == []


def test_reads_without_a_file_of_viewers_are_open_whatever_token_comes(start: Callable[..., Any]) -> None:
    dashboard = start()
    assert dashboard.client.get("/status", headers=bearer("nobody-has-this-token")).status_code == 200
    assert dashboard.get("/status")["dashboard"]["reads_need_token"] is False


def test_viewers_alone_make_a_server_that_is_read_only(start: Callable[..., Any], files: dict[str, str]) -> None:
    dashboard = start(**files | {"token_file": ""})
    answer = dashboard.write("POST", RELOAD, token=EVE)
    assert (answer.status_code, answer.json()["reason"]) == (403, "read-only")


def test_a_token_or_name_in_both_files_is_a_fault(tmp_path: Path, files: dict[str, str]) -> None:
    for line, told in ((f"zoe {ANN}", "the token is that of"), (f"ann {ANN}x", "the name is that of")):
        write_private(tmp_path / "viewers", f"{line}\n")
        with pytest.raises(SettingsInvalid, match=f"read_token_file: .*viewers:1: {told} .*operators:3 again"):
            DashboardServer(ServerSettings("none.sock", port=0, **files))


def test_files_that_change_count_at_once_and_streams_end(
    closed: Any, controller: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stream = closed.events("?sections=switches")
    assert next(stream)[0] == "snapshot"
    write_private(tmp_path / "viewers", "eve eve-has-another-token\n")
    assert list(stream) == []
    assert closed.client.get("/status").status_code == 401
    closed.client.headers.update(bearer("eve-has-another-token"))
    assert closed.client.get("/status").status_code == 200
    write_private(tmp_path / "viewers", "eve short\n")
    closed.wait_until(lambda: "viewers:1: the token has 5 characters" in caplog.text)
    assert "the tokens that were read before stay" in caplog.text
    assert closed.client.get("/status").status_code == 200
    (tmp_path / "operators").unlink()
    write_private(tmp_path / "viewers", f"eve {EVE}\n")
    closed.wait_until(lambda: "operators: No such file or directory" in caplog.text)
    assert closed.write("POST", RELOAD, token=ANN).status_code == 200


def test_a_client_may_not_guess_on(start: Callable[..., Any], files: dict[str, str]) -> None:
    dashboard = start(ServerLimits(guesses=3, guess_s=60.0), **files | {"read_token_file": ""})
    stale = [dashboard.write("POST", RELOAD, token="a-token-of-yesterday").status_code for _ in range(9)]
    assert stale == [401] * 9
    assert dashboard.write("POST", RELOAD, token=ANN).status_code == 200
    found = [dashboard.write("POST", RELOAD, token=f"a-guess-in-the-dark-{number}") for number in range(4)]
    assert [answer.status_code for answer in found] == [401, 401, 429, 429]
    barred = dashboard.write("POST", RELOAD, token=ANN)
    assert (barred.status_code, barred.json()["reason"]) == (429, "token-rate")
    assert 0 < int(barred.headers["retry-after"]) <= 60
    status = dashboard.get("/status")["dashboard"]
    assert status["wrong_tokens"] == {"clients": {"127.0.0.1": 11}, "clients_forgotten": 0}
    assert (status["refused"]["token"], status["refused"]["token-rate"]) == (11, 3)


def test_guesses_are_forgiven_with_time_and_clients_are_apart() -> None:
    now_s = 100.0
    guesses = Guesses(ServerLimits(guesses=2, guess_s=10.0), lambda: now_s)
    for number in range(2):
        assert guesses.wait_s("2001:db8::1") == 0
        guesses.note("2001:db8::1", digest(b"%d" % number))
    assert guesses.wait_s("2001:db8::ffff") == 10.0  # any host has all addresses of its subnet
    assert guesses.wait_s("2001:db8:0:1::1") == 0
    now_s += 10.0
    assert guesses.wait_s("2001:db8::1") == 0
    guesses.note("2001:db8::1", digest(b"2"))
    assert guesses.wait_s("2001:db8::1") == 10.0


def test_clients_are_bounded() -> None:
    guesses = Guesses(ServerLimits(guesses=1, guessers=4))
    for number in range(6):
        guesses.note(f"192.0.2.{number}", digest(b"wrong"))
    assert guesses.document() == {
        "clients": {f"192.0.2.{number}": 1 for number in range(2, 6)},
        "clients_forgotten": 2,
    }
    assert guesses.wait_s("192.0.2.0") == 0
    assert guesses.wait_s("192.0.2.5") > 0


@pytest.mark.parametrize("setting", ["token_file", "read_token_file"])
@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_tokens_over_plain_http_are_refused_beyond_this_machine(
    files: dict[str, str], setting: str, host: str
) -> None:
    settings = ServerSettings("none.sock", host=host, port=0, **{setting: files[setting]})
    with pytest.raises(SettingsInvalid) as caught:
        DashboardServer(settings)
    told = str(caught.value)
    assert told.startswith(f"tokens_over_plain_http: {host} is not a loopback address")
    for cure in ("certificate and key", "loopback address as host", "'accepted'"):
        assert cure in told
    accepted = DashboardServer(replace(settings, tokens_over_plain_http="accepted"))
    assert accepted.url.startswith("http://")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_tokens_on_loopback_need_nothing_else(files: dict[str, str], host: str) -> None:
    if ":" in host and not socket.has_ipv6:
        pytest.skip("needs IPv6")
    assert DashboardServer(ServerSettings("none.sock", host=host, port=0, **files)).url


def test_without_tokens_any_address_will_do() -> None:
    assert DashboardServer(ServerSettings("none.sock", host="0.0.0.0", port=0)).url
