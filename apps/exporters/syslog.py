"""Significant events to a syslog daemon: by its Unix socket, or by UDP."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Mapping
from typing import Any, TypeAlias

from apps.exporters.fault import OutputFault
from apps.exporters.rfc5424 import SyslogSeverity, message
from apps.exporters.settings import SyslogSettings
from apps.system import system_socket, system_threading
from controller.config.terms import parse_host_port

APP = "vsrt"
DATA_ID = "port@32473"
"""32473 is the enterprise number for documentation (RFC 5612): the project has none of its own."""

ASK_AGAIN_S = 10.0
"""Time between two questions for the address of a name that nobody told."""

Address: TypeAlias = tuple[socket.AddressFamily, Any]


class SyslogSender:
    """Sends messages without waiting: what the daemon does not take at once, or is over the bound, is counted.

    So is what comes before it is known which address a name has.
    """

    def __init__(self, settings: SyslogSettings, logger: logging.Logger) -> None:
        self.fault = OutputFault(f"syslog at {settings.target}", logger)
        self._daemon = DaemonAddress(settings.target)
        self._is_nameless = False
        self.sent = 0
        self.suppressed = 0
        self._settings = settings
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
                self._disconnect()
                self._connected().send(encoded)
        except OSError as error:
            self.fault.failed(error)
        else:
            self.sent += 1
            self.fault.passed()

    def look(self) -> None:
        """Tell of a name that has no address, before there is anything to send, and of its having one."""
        fault = self._daemon.fault if self._daemon.found is None else None
        if fault is not None and not self._is_nameless:
            self.fault.failed(fault)
        elif fault is None and self._is_nameless:
            self.fault.passed()
        self._is_nameless = fault is not None

    def close(self) -> None:
        """Close the socket, and ask for no name any more."""
        self._daemon.end()
        self._disconnect()

    def _disconnect(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _connected(self) -> socket.socket:
        if self._socket is None:
            if self._daemon.found is None:
                raise self._daemon.fault or OSError("its address is not known yet")
            family, address = self._daemon.found
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


class DaemonAddress:
    """Where a daemon is, by ``/path`` or ``host:port``; ValueError for anything else.

    A name is asked for on a thread of its own, until somebody tells its address.

    Attributes
    ----------
    found
        Family and address; None as long as they are not known.
    fault
        Why the last question for a name failed; None where none has.
    """

    def __init__(self, target: str) -> None:
        self.found: Address | None = None
        self.fault: OSError | None = None
        self._is_over = system_threading.Event()
        if target.startswith("/"):
            self.found = socket.AF_UNIX, target
            return
        try:
            host, port = parse_host_port(target)
        except ValueError as error:
            raise ValueError(f"{target!r} is neither a socket's path nor host:port: {error}") from error
        try:
            self.found = _address_of(host, port, system_socket.AI_NUMERICHOST)
        except OSError:
            asking = system_threading.Thread(target=self._ask, args=(host, port), name=f"syslog {host}", daemon=True)
            asking.start()

    def end(self) -> None:
        """Ask no more; a question that was asked may still be waited for."""
        self._is_over.set()

    def _ask(self, host: str, port: int) -> None:
        while not self._is_over.is_set():
            try:
                self.found = _address_of(host, port)
            except OSError as error:
                self.fault = error
                self._is_over.wait(ASK_AGAIN_S)
            else:
                return


def _address_of(host: str, port: int, flags: int = 0) -> Address:
    family, _, _, _, address = system_socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM, flags=flags)[0]
    return family, address
