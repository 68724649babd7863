"""Significant events to a syslog daemon: by its Unix socket, or by UDP."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Mapping

from apps.exporters.fault import OutputFault
from apps.exporters.rfc5424 import SyslogSeverity, message
from apps.exporters.settings import SyslogSettings
from controller.config.terms import parse_host_port

APP = "vsrt"
DATA_ID = "port@32473"
"""32473 is the enterprise number for documentation (RFC 5612): the project has none of its own."""


class SyslogSender:
    """Sends messages without waiting: what the daemon does not take at once, or is over the bound, is counted."""

    def __init__(self, settings: SyslogSettings, logger: logging.Logger) -> None:
        self.fault = OutputFault(f"syslog at {settings.target}", logger)
        self.sent = 0
        self.suppressed = 0
        self._settings = settings
        self._address = parse_target(settings.target)
        self._host = socket.gethostname()
        self._allowance = settings.events_per_s
        self._refilled_s = time.monotonic()
        self._socket: socket.socket | None = None

    def send(
        self, text: str, severity: SyslogSeverity, at_s: float, message_id: str, data: Mapping[str, object]
    ) -> None:
        """Send one message; a daemon that was started anew is found again at once."""
        if not self._allowed():
            self.suppressed += 1
            return
        encoded = message(
            text,
            severity=severity,
            facility=self._settings.facility,
            at_s=at_s,
            host=self._host,
            app=APP,
            pid=os.getpid(),
            message_id=message_id,
            data_id=DATA_ID,
            data=data,
        )
        try:
            try:
                self._connected().send(encoded)
            except (ConnectionError, FileNotFoundError):
                self.close()
                self._connected().send(encoded)
        except OSError as error:
            self.fault.failed(error)
        else:
            self.sent += 1
            self.fault.passed()

    def close(self) -> None:
        """Close the socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _connected(self) -> socket.socket:
        if self._socket is None:
            family, address = self._address
            client = socket.socket(family, socket.SOCK_DGRAM)
            client.setblocking(False)
            try:
                client.connect(address)
            except OSError:
                client.close()
                raise
            self._socket = client
        return self._socket

    def _allowed(self) -> bool:
        """A token bucket that holds one second's events."""
        now, rate = time.monotonic(), self._settings.events_per_s
        self._allowance = min(max(rate, 1.0), self._allowance + (now - self._refilled_s) * rate)
        self._refilled_s = now
        if self._allowance < 1.0:
            return False
        self._allowance -= 1.0
        return True


def parse_target(target: str) -> tuple[socket.AddressFamily, str | tuple[str, int]]:
    """Return family and address of ``/path`` or ``host:port``; ValueError for anything else."""
    if target.startswith("/"):
        return socket.AF_UNIX, target
    try:
        found = socket.getaddrinfo(*parse_host_port(target), type=socket.SOCK_DGRAM)
    except (OSError, ValueError) as error:
        raise ValueError(f"{target!r} is neither a socket's path nor host:port: {error}") from error
    family, _, _, _, address = found[0]
    return family, (str(address[0]), int(address[1]))
