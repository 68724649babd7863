"""Whether the server's process answers: it is asked now and then, over HTTP, as a load balancer would ask."""

from __future__ import annotations

import http.client
import ssl
import time
from urllib.parse import urlsplit

from apps.dashboard.child import Child

INTERVAL_S = 2.0
TIMEOUT_S = 3.0
UNANSWERED = 2
"""Questions in a row that go unanswered before a server counts as frozen."""

START_S = 30.0
"""How long a server may take to answer for the first time."""

UNSPECIFIED = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""What stands for all addresses of this machine, and one of them."""


class Watchdog:
    """Asks a child; `fault` says, in a sentence, what is wrong with it, None where nothing is known to be.

    `answered` tells whether the process that runs has ever answered.
    """

    def __init__(self, child: Child) -> None:
        self.fault: str | None = None
        self._child = child
        self._start_count = self._end_count = 0
        self._begun_s = 0.0
        self._asked_s = float("-inf")
        self._unanswered = 0
        self.answered = False

    def look(self) -> None:
        """Ask where it is time to; the answer is waited for, `TIMEOUT_S` at most."""
        child, now = self._child, time.monotonic()
        if child.start_count != self._start_count:
            self._start_count, self._begun_s = child.start_count, now
            self._unanswered, self.answered = 0, False
        if child.end_count != self._end_count:
            self._end_count = child.end_count
            how = f"by signal {-child.exit_status}" if child.exit_status < 0 else f"with status {child.exit_status}"
            self.fault = f"The dashboard's server ended {how}: page and API are away until it is started anew."
        elif child.pid is not None and now - self._asked_s >= INTERVAL_S:
            self._asked_s = now
            self._ask(now)

    def _ask(self, now: float) -> None:
        url, pid = self._child.url, self._child.pid
        if url is not None and answers(url):
            self.fault, self._unanswered, self.answered = None, 0, True
            return
        self._unanswered += 1
        if self._unanswered >= UNANSWERED and (self.answered or now - self._begun_s > START_S):
            self.fault = (
                f"The dashboard's server (process {pid}) does not answer: page and API are away. "
                f"`kill -9 {pid}` has it started anew."
            )


def answers(url: str) -> bool:
    """Tell whether the server at `url`, on this machine, answers its health question, whatever it says."""
    parts = urlsplit(url)
    host = UNSPECIFIED.get(parts.hostname or "", parts.hostname or "")
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection(host, parts.port, timeout=TIMEOUT_S, context=context)
    else:
        connection = http.client.HTTPConnection(host, parts.port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", "/healthz")
        connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return True
