"""Network namespaces: a private one around an emulation, and visits to those of its hosts."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

CLONE_NEWNET = 0x40000000


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _set_network(descriptor: int) -> None:
    _check(ctypes.CDLL(None, use_errno=True).setns(descriptor, CLONE_NEWNET))


@contextmanager
def private_network() -> Iterator[None]:
    """Give this thread, and the processes it starts, an empty network of their own with loopback up.

    What is made inside (bridges, veth pairs, sockets) is invisible outside and vanishes with the last process in
    it, so neither a crash nor a name can touch the machine's own network. Raises OSError without the privilege.
    """
    outside = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        _check(ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET))
        try:
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            yield
        finally:
            _set_network(outside)
    finally:
        os.close(outside)


@contextmanager
def network_of(pid: int | None) -> Iterator[None]:
    """Stay in the network of process `pid` (None: where we are) meanwhile; sockets opened there remain there."""
    if pid is None:
        yield
        return
    here = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        there = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
        try:
            _set_network(there)
        finally:
            os.close(there)
        try:
            yield
        finally:
            _set_network(here)
    finally:
        os.close(here)
