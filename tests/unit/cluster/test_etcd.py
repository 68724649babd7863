"""What etcd's servers do wrong, or ask for, beside what every store does."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from apps.cluster.etcd import Access, EtcdEngine, needs_tls, tls_context
from apps.emulation.free_ports import free_port
from certificates import Authority
from controller.cluster.engine import (
    Committed,
    GrantLease,
    KeepLease,
    KeyChanges,
    KeyCondition,
    KeyPage,
    PutKey,
    ReadPage,
    Silent,
    Transaction,
)
from etcd_server import EtcdServer

WAIT_S = 20.0
REQUESTS = (
    Transaction((KeyCondition("/a", 1),), (PutKey("/a", "1"),)),
    ReadPage("/a"),
    GrantLease(3),
    KeepLease(7),
)


@pytest.fixture
def mute() -> Iterator[str]:
    """Where connections are taken and nothing is answered."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def closed() -> str:
    """Where nobody listens."""
    return f"http://127.0.0.1:{free_port()}"


@contextmanager
def answering(status: int, body: bytes) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_server_that_refuses_is_passed_over_at_once(etcd_server: EtcdServer, closed: str, prefix: str):
    engine = EtcdEngine(Access((closed, etcd_server.endpoint)), WAIT_S)
    once = Transaction((), (PutKey(f"{prefix}a", "1"),))
    assert type(engine.ask(once)) is Committed
    assert engine.endpoint == etcd_server.endpoint
    engine.close()


def test_after_a_server_that_is_silent_the_next_one_is_asked(etcd_server: EtcdServer, mute: str):
    engine = EtcdEngine(Access((mute, etcd_server.endpoint)), 0.1)
    before_s = time.monotonic()
    reply = engine.ask(ReadPage("/"))
    assert reply == Silent(f"{mute} does not answer (timed out).")
    assert time.monotonic() - before_s >= 0.1
    assert engine.endpoint == etcd_server.endpoint
    engine.close()


def test_where_nobody_listens_the_store_is_silent(closed: str):
    engine = EtcdEngine(Access((closed,)))
    assert engine.ask(ReadPage("/")) == Silent(f"{closed} does not answer ([Errno 111] Connection refused).")
    report = engine.watch("/", 0).take(WAIT_S)
    assert type(report) is Silent and closed in report.why


def test_a_server_that_stops_is_silent_and_answers_when_it_goes_on(own_etcd: EtcdServer):
    engine, patient = (EtcdEngine(Access((own_etcd.endpoint,)), wait_s) for wait_s in (0.2, WAIT_S))
    assert type(patient.ask(ReadPage("/"))) is KeyPage
    own_etcd.stop()
    assert type(engine.ask(ReadPage("/"))) is Silent
    own_etcd.resume()
    assert type(patient.ask(ReadPage("/"))) is KeyPage
    watch = patient.watch("/", 0)
    own_etcd.kill()
    assert type(watch.take(WAIT_S)) is Silent
    assert type(patient.ask(ReadPage("/"))) is Silent


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: type(request).__name__)
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b"<html>"),
        (200, b"[]"),
        (200, b"{}"),
        (200, b'{"header": {"revision": "many"}, "ID": "x", "result": {"TTL": "y"}}'),
        (200, b'{"header": {"revision": "1"}, "kvs": [{"key": "?"}], "result": [], "responses": ["?"]}'),
        (502, b"bad gateway"),
        (404, b'{"error": "Not Found", "code": "none"}'),
        (503, b'{"error": "etcdserver: no leader", "code": 14}'),
    ],
)
def test_what_makes_no_sense_counts_as_silence(request_, status: int, body: bytes):
    with answering(status, body) as endpoint:
        engine = EtcdEngine(Access((endpoint,)))
        assert type(engine.ask(request_)) is Silent
        assert type(engine.watch("/", 0).take(WAIT_S)) is Silent
        engine.close()


def test_only_what_may_be_done_twice_is_sent_again(etcd_server: EtcdServer, prefix: str):
    body = b'{"error": "etcdserver: request timed out", "code": 14}'
    with answering(503, body) as endpoint:
        access = Access((endpoint, etcd_server.endpoint))
        once = Transaction((), (PutKey(f"{prefix}a", "1"),))
        engine = EtcdEngine(access, WAIT_S)
        assert engine.ask(once) == Silent("etcd says: etcdserver: request timed out.")
        assert type(engine.ask(once._replace(is_repeatable=True))) is Committed
        engine.close()


def test_a_store_with_passwords_and_certificates(tmp_path: Path):
    authority = Authority(tmp_path)
    served = authority.issue("server", at="IP:127.0.0.1")
    files = ["--cert-file", str(served.certificate), "--key-file", str(served.key)]
    server = EtcdServer(tmp_path / "etcd", *files, scheme="https").launch()
    try:
        context = tls_context(str(authority.certificate), "", "")
        access = Access((server.endpoint,), context, "root", "secret")
        assert needs_tls(access.endpoints)
        engine = EtcdEngine(access, WAIT_S)
        while type(engine.ask(ReadPage("/"))) is not KeyPage:
            assert server.process is not None and server.process.poll() is None
        for path, asked in (
            ("user/add", {"name": "root", "password": "secret"}),
            ("user/grant", {"user": "root", "role": "root"}),
            ("enable", {}),
        ):
            engine._post(f"/v3/auth/{path}", asked, False)
        assert type(engine.ask(Transaction((), (PutKey("/a", "1"),)))) is Committed
        watch = engine.watch("/", 0)
        assert type(watch.take(WAIT_S)) is KeyChanges
        watch.close()
        for other in (access._replace(password="guessed"), access._replace(user=""), access._replace(tls=None)):
            refused = EtcdEngine(other, WAIT_S)
            reply = refused.ask(ReadPage("/"))
            assert type(reply) is Silent and "secret" not in reply.why
            refused.close()
        engine.close()
    finally:
        server.kill()


@pytest.mark.parametrize(
    ("days", "ca", "why"), [(-1, "own", "certificate has expired"), (1, "other", "certificate verify failed")]
)
def test_a_certificate_that_does_not_count_is_named_with_its_server(tmp_path: Path, days: int, ca: str, why: str):
    authorities = {name: Authority(tmp_path, name) for name in ("own", "other")}
    served = authorities["own"].issue("server", days, "IP:127.0.0.1")
    listening = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    listening.load_cert_chain(*served)
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    server.daemon_threads = True
    server.socket = listening.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        endpoint = f"https://127.0.0.1:{server.server_port}"
        engine = EtcdEngine(Access((endpoint,), tls_context(str(authorities[ca].certificate), "", "")), WAIT_S)
        reply = engine.ask(ReadPage("/"))
        assert type(reply) is Silent and endpoint in reply.why and why in reply.why, reply
        engine.close()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_token_that_is_no_more_is_asked_for_anew():
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            token = self.headers.get("Authorization", "")
            asked.append(f"{self.path} {token}")
            if self.path.endswith("authenticate"):
                status, body = 200, b'{"token": "t%d"}' % len(asked)
            elif len(asked) < 4:
                status, body = 401, b'{"error": "etcdserver: invalid auth token", "code": 16}'
            else:
                status, body = 200, b'{"header": {"revision": "5"}}'
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    engine = EtcdEngine(Access((f"http://127.0.0.1:{server.server_port}",), None, "me", "mine"), WAIT_S)
    assert engine.ask(ReadPage("/")) == KeyPage(5, (), False)
    assert asked == ["/v3/auth/authenticate ", "/v3/kv/range t1", "/v3/auth/authenticate ", "/v3/kv/range t3"]
    engine.close()
    server.shutdown()
    server.server_close()
    thread.join()


def test_who_takes_no_reports_of_a_watch_is_told_no_more(etcd_server: EtcdServer, prefix: str, monkeypatch):
    monkeypatch.setattr("apps.cluster.etcd.REPORTS_BOUND", 2)
    engine = EtcdEngine(Access((etcd_server.endpoint,)), WAIT_S)
    before = engine.ask(ReadPage(prefix)).revision
    watch = engine.watch(prefix, before)
    assert type(engine.ask(Transaction((), (PutKey(f"{prefix}a", "first"),)))) is Committed
    assert type(watch.take(WAIT_S)) is KeyChanges, "from here on each change is told as it comes"
    for turn in range(3):
        assert type(engine.ask(Transaction((), (PutKey(f"{prefix}a", str(turn)),)))) is Committed
    watch._thread.join(WAIT_S)
    reports = [watch.take(WAIT_S) for _ in range(3)]
    assert [type(report) for report in reports] == [KeyChanges, KeyChanges, Silent]
    engine.close()
