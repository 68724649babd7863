"""Posts of alarms to real servers: one that takes them, is dead, slow, refuses, redirects, or is not trusted."""

from __future__ import annotations

import json
import logging
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from alarm_receiver import Receiver
from apps.emulation.free_ports import free_port
from apps.webhook import QUEUE_BOUND, WebhookPoster
from controller.config import PolicyInvalid, load_policy
from controller.config.alarm_settings import Webhook

WAIT_S = 10.0
LOGGER = logging.getLogger("webhook-test")
ALARM = {"key": "link-failed:1:1-2:1", "severity": "critical", "state": "raised"}


@pytest.fixture
def poster() -> Iterator[Callable[..., WebhookPoster]]:
    made: list[WebhookPoster] = []

    def make(url: str, **settings: Any) -> WebhookPoster:
        made.append(WebhookPoster(Webhook(url=url, **settings), LOGGER))
        made[-1].start()
        return made[-1]

    yield make
    for each in made:
        each.stop()


def until(reached: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_documents_are_posted_in_order_with_the_token(
    receiver: Receiver, poster: Callable[..., WebhookPoster], tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    found = poster(f"http://127.0.0.1:{receiver.port}/x?y=1", token_file=str(token))
    for number in range(5):
        found.put({**ALARM, "number": number})
    found.put({**ALARM, "severity": "info"})
    taken = [receiver.taken.get(timeout=WAIT_S) for _ in range(5)]
    assert [body["number"] for _, body in taken] == [0, 1, 2, 3, 4]
    assert {headers["Authorization"] for headers, _ in taken} == {"Bearer secret"}
    until(lambda: found.posted_count == 5)
    assert receiver.taken.empty(), "what is less grave than wanted is not posted"


def test_a_server_that_fails_for_a_while_gets_it_later(
    receiver: Receiver, poster: Callable[..., WebhookPoster], caplog: pytest.LogCaptureFixture
) -> None:
    receiver.answers = [503, 503]
    found = poster(f"http://127.0.0.1:{receiver.port}/")
    with caplog.at_level(logging.INFO):
        found.put(ALARM)
        until(lambda: found.posted_count == 1)
    assert [receiver.taken.get()[1]["status"] for _ in range(3)] == [503, 503, 204]
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 1
    assert found.fault is None


@pytest.mark.parametrize("status", [302, 400, 404])
def test_a_refusal_and_a_redirect_are_not_tried_again(
    receiver: Receiver, poster: Callable[..., WebhookPoster], status: int
) -> None:
    receiver.answers = [status]
    found = poster(f"http://127.0.0.1:{receiver.port}/")
    found.put(ALARM)
    until(lambda: found.failed_count == 1)
    assert found.fault == f"the receiver answered with status {status}"
    found.put({**ALARM, "number": 2})
    assert [receiver.taken.get(timeout=WAIT_S)[1].get("number") for _ in range(2)] == [None, 2]


def test_a_dead_server_is_told_of_and_given_up(poster: Callable[..., WebhookPoster]) -> None:
    found = poster(f"http://127.0.0.1:{free_port()}/", attempts=1)
    found.put(ALARM)
    until(lambda: found.failed_count == 1)
    assert found.fault is not None
    assert "Connection refused" in found.fault


def test_a_slow_server_holds_up_nobody_and_what_waits_is_bounded(
    receiver: Receiver, poster: Callable[..., WebhookPoster]
) -> None:
    receiver.held.clear()
    found = poster(f"http://127.0.0.1:{receiver.port}/", timeout_s=0.2, attempts=1)
    started = time.monotonic()
    for number in range(3 * QUEUE_BOUND):
        found.put({**ALARM, "number": number})
    assert time.monotonic() - started < 1
    assert found.dropped_count >= QUEUE_BOUND
    until(lambda: found.fault)
    assert "timed out" in str(found.fault)


def test_a_certificate_that_is_not_trusted_is_refused(
    receiver: Receiver, poster: Callable[..., WebhookPoster], tmp_path: Path
) -> None:
    pem = tmp_path / "server.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost", "-keyout", pem, "-out", tmp_path / "cert.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", pem)
    receiver.socket = context.wrap_socket(receiver.socket, server_side=True)
    untrusting = poster(f"https://localhost:{receiver.port}/", attempts=1)
    untrusting.put(ALARM)
    until(lambda: untrusting.failed_count == 1)
    assert "CERTIFICATE_VERIFY_FAILED" in str(untrusting.fault)
    trusting = poster(f"https://localhost:{receiver.port}/", ca_file=str(tmp_path / "cert.pem"), attempts=1)
    trusting.put(ALARM)
    until(lambda: trusting.posted_count == 1)


def test_a_token_that_cannot_be_read_is_told(
    receiver: Receiver, poster: Callable[..., WebhookPoster], tmp_path: Path
) -> None:
    found = poster(f"http://127.0.0.1:{receiver.port}/", token_file=str(tmp_path / "absent"), attempts=1)
    found.put(ALARM)
    until(lambda: found.failed_count == 1)
    assert "absent" in str(found.fault)
    assert receiver.taken.empty()


@pytest.mark.parametrize("url", ["ftp://x/", "x", "http://", "https:///path", "http://a b/"])
def test_an_address_that_is_none_is_a_fault_of_the_policy(url: str) -> None:
    with pytest.raises(PolicyInvalid) as caught:
        load_policy(f"version: 1\nalarms: {{webhook: {{url: {json.dumps(url)}}}}}")
    assert [error.field for error in caught.value.errors] == ["alarms.webhook.url"]
