"""Posts alarms as JSON to an address that the operator names; whatever becomes of it, nobody waits for it."""

from __future__ import annotations

import http.client
import json
import logging
import ssl
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from apps.exporters.backlog import Backlog
from controller.alarms.register import GRAVITY
from controller.config.alarm_settings import Webhook
from controller.snapshot.events import Severity

QUEUE_BOUND = 256
"""Documents that wait; where there is no room the oldest goes and is counted."""

LONGEST_PAUSE_S = 60.0
ANSWER_BYTES = 4096
TOKEN_BYTES = 4096
PASSING = frozenset({408, 425, 429, *range(500, 600)})
"""Answers after which the same document may be taken later."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_args: Any, **_kwargs: Any) -> None:
        """Follow nobody elsewhere with what was meant for one address."""


class WebhookPoster:
    """Posts documents one after the other, in their order, on a thread of its own.

    Attributes
    ----------
    fault
        Why the last attempt failed, for people; None where it did not.
    posted_count, failed_count
        Documents that were taken, and those that were given up.
    """

    def __init__(self, settings: Webhook, logger: logging.Logger) -> None:
        self.fault: str | None = None
        self.posted_count = self.failed_count = 0
        self.settings = settings
        self._logger = logger
        self._backlog: Backlog[bytes] = Backlog(QUEUE_BOUND, 1)
        self._least = GRAVITY[Severity(settings.least)]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="webhook", daemon=True)

    @property
    def dropped_count(self) -> int:
        """Documents that had no room."""
        return self._backlog.dropped

    def start(self) -> None:
        """Post from here on, where there is an address."""
        if self.settings.url:
            self._thread.start()

    def stop(self) -> None:
        """Post no more, whatever waits; returns at once."""
        self._ended.set()
        self._backlog.hurry()

    def put(self, document: dict[str, Any]) -> None:
        """Have a document posted if it is grave enough; never waits."""
        if self.settings.url and GRAVITY[Severity(document["severity"])] >= self._least:
            self._backlog.put(json.dumps(document, separators=(",", ":")).encode())

    def _run(self) -> None:
        while not self._ended.is_set():
            for body, _weight in self._backlog.take(1.0):
                self._deliver(body)

    def _deliver(self, body: bytes) -> None:
        pause_s = 1.0
        for left in range(self.settings.attempts - 1, -1, -1):
            if self._ended.is_set():
                return
            fault, may_pass = self._post(body)
            if fault is None:
                if self.fault is not None:
                    self._logger.info("The webhook %s takes documents again.", self.settings.url)
                self.fault = None
                self.posted_count += 1
                return
            if self.fault is None:
                self._logger.warning("The webhook %s does not take documents: %s", self.settings.url, fault)
            self.fault = fault
            if not may_pass or not left:
                break
            self._ended.wait(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        self.failed_count += 1

    def _post(self, body: bytes) -> tuple[str | None, bool]:
        """Post once; return what went wrong, None where nothing did, and whether it may pass."""
        headers = {"Content-Type": "application/json", "User-Agent": "vsrt-controller"}
        try:
            if self.settings.token_file:
                headers["Authorization"] = f"Bearer {_token(self.settings.token_file)}"
            context = ssl.create_default_context(cafile=self.settings.ca_file or None)
            opener = urllib.request.build_opener(_NoRedirect, urllib.request.HTTPSHandler(context=context))
            request = urllib.request.Request(self.settings.url, body, headers, method="POST")
            with opener.open(request, timeout=self.settings.timeout_s) as answer:
                answer.read(ANSWER_BYTES)
        except urllib.error.HTTPError as error:
            error.close()
            return f"the receiver answered with status {error.code}", error.code in PASSING
        except urllib.error.URLError as error:
            return f"the receiver cannot be reached: {error.reason}", True
        except (OSError, http.client.HTTPException, ValueError) as error:
            return f"the post failed: {error or type(error).__name__}", True
        return None, True


def _token(path: str) -> str:
    text = Path(path).read_bytes()[:TOKEN_BYTES].decode("ascii").strip()
    if not text.isprintable() or " " in text or not text:
        raise ValueError(f"{path} does not hold one word")
    return text
