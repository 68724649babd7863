"""TCP ports at which processes that are started next can listen.

The system gives a program that asks for any port one of its dynamic range (`net.ipv4.ip_local_port_range`), and may
give it to another one, or to a connection, before what was started listens there. These are below that range, and
each process gives those of a block that no other process of its network namespace has.
"""

from __future__ import annotations

import itertools
import os
import socket
from functools import cache

FIRST, BLOCK, BLOCKS = 20_480, 96, 128
"""Ports 20480 to 32767; Linux's dynamic range begins at 32768."""


@cache
def _block() -> tuple[socket.socket, itertools.cycle[int]]:
    """Take a block, which is this process's until it ends: an abstract socket of its name cannot be made twice."""
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    for number in range(BLOCKS):
        block = (os.getpid() + number) % BLOCKS
        try:
            claim.bind(f"\0vsrt-free-ports-{block}")
        except OSError:
            continue
        begin = FIRST + block * BLOCK
        return claim, itertools.cycle(range(begin, begin + BLOCK))
    claim.close()
    raise OSError("other processes have all the ports that are given")


def free_port() -> int:
    """Return a port at which nobody listens, and which is given again only after all others of the block.

    Raises OSError where somebody listens at each.
    """
    _, ports = _block()
    for port in itertools.islice(ports, BLOCK):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("0.0.0.0", port))
            except OSError:
                continue
            return port
    raise OSError(f"somebody listens at each of {BLOCK} ports")
