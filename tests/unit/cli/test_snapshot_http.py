"""The API as a source: addresses, certificates and tokens, and servers that answer something else."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip("os_ken")

from apps.cli.main import main
from fed_controller import FedController, multicast_documents
from served_dashboard import served

TOKEN = "0123456789abcdefghij"
PROBLEM = "application/problem+json"
Answer = tuple[int, str, bytes]


@pytest.fixture
def serve() -> Iterator[Callable[[Answer], str]]:
    """Start a server that gives one answer to whatever it is asked, and return its address."""
    servers = []

    def start(answer: Answer) -> str:
        status, kind, body = answer

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def token(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(TOKEN)
    path.chmod(0o600)
    return path


def stream(*events: tuple[str, object]) -> Answer:
    text = "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events)
    return 200, "text/event-stream", text.encode()


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ((404, "text/html", b"<html>nothing</html>"), "Not Found"),
        ((200, "text/html", b"<html>a page</html>"), "the stream ended"),
        ((200, "text/event-stream", b""), "the stream ended"),
        ((200, "text/event-stream", b": nothing yet\n\nevent: other\ndata: 1\n\n"), "expected an object"),
        ((200, "text/event-stream", b"event: snapshot\ndata: {oops\n\n"), "Expecting property name"),
        ((200, "text/event-stream", b"event: snapshot\ndata: \xff\n\n"), "no dashboard answers"),
        (stream(("snapshot", {"version": 1})), "the stream is none of a dashboard"),
        (stream(("snapshot", {"sections": {"status": [{"no": "id"}]}})), "the stream is none of a dashboard"),
        (stream(("snapshot", {"sections": {"status": [7]}})), "the stream is none of a dashboard"),
        (stream(("snapshot", {"sections": {"status": []}})), "the controller is away"),
        ((503, PROBLEM, b'{"title": "Full", "detail": "64 streams are open"}'), "64 streams"),
    ],
)
def test_what_is_no_dashboard_is_told_as_such(
    serve: Callable[[Answer], str], capsys: pytest.CaptureFixture[str], answer: Answer, told: str
):
    url = serve(answer)
    assert main(["show", "status", "--url", url]) == 1
    captured = capsys.readouterr()
    assert (captured.out, f"vsrt: {url}: " in captured.err, told in captured.err) == ("", True, True), captured.err


@pytest.mark.parametrize(
    ("answer", "status", "told"),
    [
        (
            (422, "application/problem+json", b'{"detail": "family: 4 or 6", "field": "family"}'),
            2,
            "vsrt: family: 4 or 6\n",
        ),
        ((409, "application/problem+json", b'{"detail": "none there", "field": "dpid"}'), 1, "dpid: none there"),
        ((500, "text/plain", b"oops"), 1, "Internal Server Error"),
        ((200, "application/json", b"oops"), 1, "no dashboard answers"),
    ],
)
def test_answers_to_actions_are_told(
    serve: Callable[[Answer], str], capsys: pytest.CaptureFixture[str], answer: Answer, status: int, told: str
):
    assert main(["do", "reload", "--url", serve(answer)]) == status
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--url", "ftp://localhost:1"], "--url: ftp://localhost:1 is not of the form http(s)://HOST:PORT"),
        (["--url", "localhost:8181"], "--url: localhost:8181 is not"),
        (["--url", "http://localhost:99999"], "--url: http://localhost:99999: Port out of range"),
        (["--url", "http://localhost:8181/page"], "is not of the form"),
        (["--url", "http://localhost:1", "--socket", "x"], "--socket: not with --url"),
        (["--url", "http://localhost:1", "--ca", "x"], "--ca: only with https"),
        (["--url", "https://localhost:1", "--ca", "/none.pem"], "--ca: /none.pem: No such file"),
        (["--url", "http://localhost:1", "--token-file", "/none"], "--token-file: /none: No such file"),
        (["--url", "http://localhost:1", "--token-file", "/dev/null"], "--token-file: /dev/null: holds no token"),
        (["--url", "http://192.0.2.1:1", "--token-file", "/dev/null"], "to this machine only"),
        (["--token-file", "/dev/null"], "--token-file: only with --url"),
        (["--ca", "/dev/null"], "--ca: only with --url"),
    ],
)
def test_arguments_that_make_no_sense(capsys: pytest.CaptureFixture[str], words: list[str], told: str):
    assert main(["show", "status", *words]) == 2
    assert told in capsys.readouterr().err


def test_a_dashboard_without_a_controller_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with served(tmp_path / "none.sock", alone=True) as url:
        assert main(["show", "groups", "--url", url]) == 1
        assert "the controller is away" in capsys.readouterr().err
    assert main(["show", "groups", "--url", url]) == 1
    assert "no dashboard answers" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_the_certificate_is_checked(tmp_path: Path, token: Path, capsys: pytest.CaptureFixture[str]):
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    made = ["openssl", "req", "-x509", *kind, *subject, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(made, check=True, capture_output=True)
    key.chmod(0o600)
    controller = FedController(tmp_path / "vsrt.sock", multicast_documents())
    controller.start()
    files = {"certificate": str(certificate), "key": str(key), "token_file": str(token)}
    try:
        with served(controller.path, **files) as url:
            assert url.startswith("https://")
            assert main(["show", "status", "--url", url]) == 1
            assert "certificate" in capsys.readouterr().err
            assert main(["show", "status", "--url", url, "--ca", str(certificate)]) == 0
            assert "counters.joins" in capsys.readouterr().out
            assert main(["do", "drain", "3", "--url", url, "--ca", str(certificate), "--token-file", str(token)]) == 0
            assert controller.asked == [("switch-drain", {"dpid": 3})]
    finally:
        controller.stop()


def test_reads_that_need_a_token_have_it(tmp_path: Path, token: Path, capsys: pytest.CaptureFixture[str]):
    token.write_text(f"{TOKEN}\n")
    viewer = tmp_path / "viewer"
    viewer.touch(mode=0o600)
    viewer.write_text("eve-may-read-alone\n")
    controller = FedController(tmp_path / "vsrt.sock", multicast_documents())
    controller.start()
    try:
        with served(controller.path, token_file=str(token), read_token_file=str(viewer)) as url:
            assert main(["show", "groups", "--url", url]) == 1
            assert "--token-file" in capsys.readouterr().err
            for path in (viewer, token):
                assert main(["show", "groups", "--url", url, "--token-file", str(path), "--json"]) == 0
                assert "239." in capsys.readouterr().out
            assert main(["do", "drain", "3", "--url", url, "--token-file", str(viewer)]) == 1
            assert "the token is that of viewer, who may read and not write" in capsys.readouterr().err
            assert main(["do", "drain", "3", "--url", url, "--token-file", str(token)]) == 0
            assert controller.asked == [("switch-drain", {"dpid": 3})]
    finally:
        controller.stop()
