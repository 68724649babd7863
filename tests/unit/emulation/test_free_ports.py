"""Ports that are given to processes which are started next."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

from apps.emulation.free_ports import BLOCK, BLOCKS, FIRST, free_port

ROOT = Path(__file__).parents[3]


def test_no_port_comes_twice_before_the_others() -> None:
    ports = [free_port() for _ in range(40)]
    assert len(set(ports)) == 40
    assert all(FIRST <= port < FIRST + BLOCK * BLOCKS for port in ports)


def test_where_somebody_listens_no_port_is_given() -> None:
    begun = free_port()
    with socket.create_server(
        ("127.0.0.1", begun + 1 if (begun + 1 - FIRST) % BLOCK else begun + 1 - BLOCK)
    ) as server:
        assert server.getsockname()[1] not in {free_port() for _ in range(BLOCK - 1)}


def test_two_processes_give_other_ports() -> None:
    program = (
        "from apps.emulation.free_ports import BLOCK, free_port\n"
        "print(*[free_port() for _ in range(BLOCK)], flush=True)\n"
        "input()\n"
    )
    given: list[set[str]] = []
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    for process in running:
        assert process.stdout is not None
        given.append(set(process.stdout.readline().split()))
    for process in running:
        process.communicate("\n")
    assert all(given)
    assert not given[0] & given[1]
    assert not given[2] & (given[0] | given[1])
