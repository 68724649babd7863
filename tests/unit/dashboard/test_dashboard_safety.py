"""Bad input and bad clients, over real connections: refused, counted, logged, and no secret in any log."""

from __future__ import annotations

import logging
import socket
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from apps.dashboard.limits import ServerLimits
from apps.dashboard.server import DashboardServer
from apps.dashboard.settings import ServerSettings
from apps.tls_files import SettingsInvalid

TOKEN = "correct-horse-battery-staple"
GOOD = {"Authorization": f"Bearer {TOKEN}"}
RELOAD = "/policy/reload"


@pytest.fixture(autouse=True)
def nothing_asked(controller: Any) -> None:
    controller.asked.clear()


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": TOKEN},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": "Bearer"},
        {"Authorization": f"Bearer {TOKEN[:-1]}"},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Cookie": f"token={TOKEN}"},
    ],
)
def test_a_write_needs_the_token(dashboard: Any, controller: Any, headers: dict[str, str]) -> None:
    before = dashboard.refused("token")
    answer = dashboard.client.post(RELOAD, headers=headers)
    assert (answer.status_code, answer.json()["reason"]) == (401, "token")
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert dashboard.client.post(f"{RELOAD}?token={TOKEN}").status_code == 401
    dashboard.wait_refused("token", before + 2)
    assert controller.asked == []


def test_secrets_are_in_no_log_and_every_write_is(dashboard: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    assert dashboard.write("POST", RELOAD).status_code == 200
    dashboard.write("POST", RELOAD, token="a-wrong-secret-of-mine")
    dashboard.client.post(f"{RELOAD}?token={TOKEN}", headers=GOOD)

    def lines() -> list[str]:
        return [record.getMessage() for record in caplog.records if record.name == "vsrt.dashboard.access"]

    told = dashboard.wait_until(lambda: len(lines()) == 3 and lines())
    assert [line.partition(" ")[2].partition(" in ")[0] for line in told] == [
        'operator POST "/api/v1/policy/reload": 200',
        '- POST "/api/v1/policy/reload": 401',
        'operator POST "/api/v1/policy/reload": 422',
    ]
    ours = [record.getMessage() for record in caplog.records if not record.name.startswith("http")]
    everything = "\n".join([*ours, dashboard.client.get("/status").text])
    assert TOKEN not in everything
    assert "a-wrong-secret" not in everything


def test_a_log_line_is_one_line_whatever_is_asked(
    start: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    dashboard = start()
    dashboard.raw(b"POST /api/v1/%0a%0d<b>'\x7f HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    dashboard.raw(b"POST /api/v1/%0a%0d<b>' HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    told = [record.getMessage() for record in caplog.records if record.name == "vsrt.dashboard.refused"]
    assert len(told) == 2
    assert not any("\n" in line or "\x7f" in line for line in told)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate"},
    ],
)
def test_other_sites_may_ask_nothing_of_the_api(dashboard: Any, controller: Any, headers: dict[str, str]) -> None:
    before = dashboard.refused("cross-site")
    for method, path in (("POST", RELOAD), ("GET", "/groups"), ("GET", "/stream")):
        answer = dashboard.client.request(method, path, headers=GOOD | headers)
        assert (answer.status_code, answer.json()["reason"]) == (403, "cross-site")
        assert "access-control-allow-origin" not in answer.headers
    dashboard.wait_refused("cross-site", before + 3)
    assert controller.asked == []


def test_the_page_itself_may_ask_and_be_linked_to(dashboard: Any) -> None:
    own = {"Origin": dashboard.url, "Sec-Fetch-Site": "same-origin"}
    assert dashboard.client.post(RELOAD, headers=GOOD | own).status_code == 200
    linked = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert httpx.get(f"{dashboard.url}/", headers=linked).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "", "127.0.0.1@evil.example", "[::1", "a b"]
)
def test_names_of_others_are_not_answered(dashboard: Any, host: str) -> None:
    before = dashboard.refused("host")
    answer = dashboard.raw(f"GET /api/v1/status HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 421 "), answer[:100]
    assert b'"reason":"host"' in answer
    dashboard.wait_refused("host", before + 1)


def test_names_that_are_set_are_answered(start: Callable[..., Any]) -> None:
    dashboard = start(names="fabric.example ops.example")
    for host in ("fabric.example", "OPS.example:8181", "localhost", "127.0.0.1", "[::1]:80"):
        answer = dashboard.raw(f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 200 "), host


@pytest.mark.parametrize(
    "path",
    [
        "/static/../server.py",
        "/static/%2e%2e/server.py",
        "/static/..%2fserver.py",
        "/static/.%2E/%2e./server.py",
        "/static//etc/passwd",
        "/static/..\\server.py",
        "/static/%5c..%5cserver.py",
        "/static/x%00.js",
        "/static/\xff",
        "/static/%ff%fe",
        "/" + "a" * 3000,
    ],
)
def test_tricks_with_paths(dashboard: Any, path: str) -> None:
    before = dashboard.refused("path") + dashboard.refused("malformed")
    answer = dashboard.raw(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode("latin-1"))
    assert answer.startswith(b"HTTP/1.1 400 "), answer[:100]
    dashboard.wait_until(lambda: dashboard.refused("path") + dashboard.refused("malformed") > before)


@pytest.mark.parametrize("path", ["/static/", "/static/server.py", "/static/index.html/x", "/static/.", "/server.py"])
def test_files_that_are_not_the_page_are_not_served(dashboard: Any, path: str) -> None:
    answer = dashboard.raw(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    assert answer.split(b" ")[1] in (b"400", b"404")


def test_the_page_is_served_with_its_kind_and_a_tag(dashboard: Any) -> None:
    page = httpx.get(f"{dashboard.url}/")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    again = httpx.get(f"{dashboard.url}/", headers={"If-None-Match": page.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    head = httpx.head(f"{dashboard.url}/")
    assert (head.status_code, head.content) == (200, b"")


@pytest.mark.parametrize("path", ["/", "/api/v1/groups", "/api/v1/nothing", "/static/nothing", "/../"])
def test_every_answer_has_the_headers_of_safety(dashboard: Any, path: str) -> None:
    answer = dashboard.raw(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    head = answer.partition(b"\r\n\r\n")[0].decode().lower()
    policy = next(line for line in head.splitlines() if line.startswith("content-security-policy: "))
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for header in ("x-content-type-options: nosniff", "x-frame-options: deny", "referrer-policy: no-referrer"):
        assert header in head
    assert "server: " not in head


def test_html_in_names_is_data(dashboard: Any, controller: Any) -> None:
    name = "<script>alert(1)</script>\u2028</html>"
    controller.put("multicast", "hosts", "00:00:00:00:00:66", mac=name)
    answer = dashboard.wait_until(
        lambda: (found := dashboard.client.get("/hosts?search=alert")).json()["total"] and found
    )
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.json()["items"][0]["mac"] == name
    controller.remove("multicast", "hosts", "00:00:00:00:00:66")


def allocation(length: int) -> bytes:
    return b'{"count":"' + b"1" * (length - 12) + b'"}'


def post(headers: str, body: bytes = b"") -> bytes:
    head = f"POST /api/v1/allocations HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n{headers}\r\n"
    return head.encode() + body


def chunks(body: bytes, size: int) -> bytes:
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


JSON = "Content-Type: application/json\r\n"


@pytest.mark.parametrize(
    ("request_", "status", "reason"),
    [
        (post(f"{JSON}Content-Length: 65537\r\n"), 413, "body-size"),
        (post(f"{JSON}Content-Length: 99999999999\r\n"), 413, "body-size"),
        (post(f"{JSON}Transfer-Encoding: chunked\r\n", chunks(allocation(70000), 4096)), 413, "body-size"),
        (post("Content-Type: text/plain\r\nContent-Length: 2\r\n", b"{}"), 415, "media-type"),
        (post("Content-Length: 2\r\n", b"{}"), 415, "media-type"),
        (b"GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 65537\r\n\r\n", 413, "body-size"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: localhost\r\n\r\n", 421, "host"),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400, "malformed"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n", 400, "malformed"),
        (b"CONNECT evil.example:80 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "malformed"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, "malformed"),
    ],
)
def test_requests_that_are_not_taken_in(dashboard: Any, request_: bytes, status: int, reason: str) -> None:
    before = dashboard.refused(reason)
    answer = dashboard.raw(request_)
    assert answer.startswith(b"HTTP/1.1 %d " % status), answer[:100]
    assert b"connection: close" in answer.lower()
    dashboard.wait_refused(reason, before + 1)


def test_a_body_of_the_largest_size_is_taken(dashboard: Any, controller: Any) -> None:
    body = allocation(60_000)
    for request in (
        post(f"{JSON}Connection: close\r\nContent-Length: {len(body)}\r\n", body),
        post(f"{JSON}Connection: close\r\nTransfer-Encoding: chunked\r\n", chunks(body, 1000)),
    ):
        assert dashboard.raw(request).startswith(b"HTTP/1.1 200 ")
        assert len(controller.asked.pop()["count"]) == len(body) - 12


def test_nested_json_without_end_is_refused(dashboard: Any) -> None:
    body = b"[" * 60_000
    answer = dashboard.raw(post(f"{JSON}Connection: close\r\nContent-Length: {len(body)}\r\n", body))
    assert answer.split(b" ")[1] in (b"400", b"422")


SHORT = ServerLimits(connections=8, head_s=0.2, body_s=0.4, unread_s=0.3, idle_s=1, request_bytes=1 << 17)


@pytest.fixture(scope="module")
def strict(dashboard: Any, settings: ServerSettings) -> Any:
    """A server that waits for nobody."""
    found = type(dashboard)(settings, SHORT)
    yield found
    found.close()


def test_slow_heads_and_bodies_end(strict: Any) -> None:
    with strict.connect() as head, strict.connect() as body, strict.connect() as silent:
        head.sendall(b"GET / HTTP/1.1\r\nHost: local")
        body.sendall(post(f"{JSON}Content-Length: 10\r\n", b"{"))
        assert head.recv(1000) == b""
        assert body.recv(1000).startswith(b"HTTP/1.1 408 ")
        assert silent.recv(1000) == b""
    strict.wait_refused("head-time")
    strict.wait_refused("body-time")


def test_a_second_head_behind_a_stream_is_bounded_too(strict: Any) -> None:
    before = strict.refused("head-time")
    with strict.connect() as connection:
        connection.sendall(b"GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HTTP/1.1\r\nX: ")
        while connection.recv(65536):
            pass
    strict.wait_refused("head-time", before + 1)


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 20_000, "head-size"),
        (b"GET /" + b"a" * 20_000, "head-size"),
        (b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 4000, "head-size"),
        (post(f"{JSON}Transfer-Encoding: chunked\r\n", b"1\r\n{\r\n0\r\n" + b"X: a\r\n" * 50_000), "request-size"),
    ],
)
def test_heads_and_trailers_without_end_are_cut(strict: Any, request_: bytes, reason: str) -> None:
    before = strict.refused(reason)
    with strict.connect() as connection:
        try:
            for start in range(0, len(request_), 8192):
                connection.sendall(request_[start : start + 8192])
            connection.recv(1000)
        except (ConnectionResetError, BrokenPipeError):
            pass
    strict.wait_refused(reason, before + 1)


def test_connections_are_bounded_and_others_are_served_again(strict: Any) -> None:
    waiting = [strict.connect() for _ in range(12)]
    try:
        # Those beyond the bound are closed at once, before anything is asked of them.
        closed = [connection for connection in waiting if connection.recv(1000) == b""]
        assert len(closed) == len(waiting)
    finally:
        for connection in waiting:
            connection.close()
    strict.wait_refused("connections")


def test_a_large_answer_that_nobody_reads_is_cut_off(start: Callable[..., Any], controller: Any) -> None:
    controller.put("multicast", "rules", "all", rule="x" * 16_000_000)
    dashboard = start(SHORT)
    dashboard.wait_until(lambda: dashboard.get("/status")["connected"])
    with socket.socket() as silent:
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        silent.connect(("127.0.0.1", dashboard.port))
        silent.sendall(b"GET /api/v1/rules HTTP/1.1\r\nHost: localhost\r\n\r\n")
        dashboard.wait_refused("unread")
        assert dashboard.get("/switches")["total"] == 2
    controller.put("multicast", "rules", "all", rule="all")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    directory = tmp_path_factory.mktemp("tls")
    made, key = directory / "cert.pem", directory / "key.pem"
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    names = "subjectAltName=DNS:localhost,IP:127.0.0.1"
    files = ["-keyout", str(key), "-out", str(made)]
    subprocess.run(["openssl", *words.split(), "-addext", names, *files], check=True, capture_output=True)
    key.chmod(0o600)
    return made, key


def test_tls_with_a_given_certificate(start: Callable[..., Any], certificate: tuple[Path, Path]) -> None:
    made, key = certificate
    dashboard = start(SHORT, certificate=str(made), key=str(key))
    assert dashboard.url.startswith("https://")
    trusting = ssl.create_default_context(cafile=str(made))
    answer = httpx.post(f"{dashboard.url}/api/v1{RELOAD}", headers=GOOD | {"Origin": dashboard.url}, verify=trusting)
    assert answer.status_code == 200
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    with pytest.warns(DeprecationWarning):
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    with dashboard.connect() as connection, pytest.raises((ssl.SSLError, ConnectionError)):
        old.wrap_socket(connection)
    with dashboard.connect() as plain:
        plain.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200 OK" not in plain.recv(1000)


@pytest.mark.parametrize(
    ("mode", "text", "told"),
    [
        (0o644, TOKEN, "may be read by others"),
        (0o620, TOKEN, "may be read by others, or written by its group"),
        (0o600, "short", ":1: the token has 5 characters, and is to have 16 to 4096"),
        (0o600, f"# people\n\nann {TOKEN} x\n", ":3: expected a name and a token, or a token alone, found 3 words"),
        (0o600, f"ann {TOKEN}\nann {TOKEN}x\n", ":2: the name is that of .*:1 again"),
        (0o600, f"ann {TOKEN}\nbob {TOKEN}\n", ":2: the token is that of .*:1 again"),
        (0o600, f"{TOKEN}\n{TOKEN}x\n", ":2: the name is that of .*:1 again"),
        (0o600, f"ann!{TOKEN} {TOKEN}\n", ":1: a name has up to 64 letters"),
        (0o600, f"ann {TOKEN}\u00e9\n", ":1: the token has characters that are not printable ASCII"),
        (0o600, f"ann {TOKEN * 200}\n", ":1: the token has 5600 characters"),
        (0o600, "".join(f"n{number} {TOKEN}{number}\n" for number in range(257)), ":257: there are more than 256"),
        (0o600, "#" * 300_000, "the file is longer than 262144 bytes"),
        (0o600, "# nobody\n\n", "the file holds no token"),
        (0o600, "", "the file holds no token"),
        (None, "", "No such file or directory"),
    ],
)
def test_token_files_that_are_no_good(tmp_path: Path, mode: int | None, text: str, told: str) -> None:
    path = tmp_path / "token"
    if mode is not None:
        path.write_text(text)
        path.chmod(mode)
    with pytest.raises(SettingsInvalid, match=told) as caught:
        DashboardServer(ServerSettings("none.sock", port=0, token_file=str(path)))
    assert str(caught.value).startswith(f"token_file: {path}")
    assert TOKEN not in str(caught.value)


def test_certificates_that_are_no_good(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    made, key = certificate
    empty = tmp_path / "empty.pem"
    empty.touch(0o600)
    for given, told in (
        ({"certificate": str(made)}, "certificate and key: only one of them is given"),
        ({"certificate": str(made), "key": str(empty)}, f"certificate: {made} with key {empty}"),
        ({"certificate": str(made), "key": str(tmp_path / "none")}, "key: .* No such file"),
        ({"certificate": str(empty), "key": str(key)}, f"certificate: {empty}"),
    ):
        with pytest.raises(SettingsInvalid, match=told):
            DashboardServer(ServerSettings("none.sock", port=0, **given))


def test_an_address_that_is_taken_is_told(dashboard: Any) -> None:
    with pytest.raises(SettingsInvalid, match=f"port: cannot listen on 127.0.0.1, port {dashboard.port}: "):
        DashboardServer(ServerSettings("none.sock", port=dashboard.port))
