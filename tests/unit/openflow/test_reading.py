"""Wide reads return what is there, and leave the rest of a socket as it is."""

from __future__ import annotations

import socket

from apps.openflow.reading import READ_BYTES, WideReads, use_wide_reads


def test_a_read_of_a_header_returns_all_messages_that_are_there():
    near, far = socket.socketpair()
    with near, far:
        far.sendall(bytes(3000))
        assert WideReads(near).recv(8) == bytes(3000)


def test_no_read_returns_more_than_its_bound_unless_more_is_asked_for():
    near, far = socket.socketpair()
    with near, far:
        far.sendall(bytes(4 * READ_BYTES))
        reader = WideReads(near)
        assert len(reader.recv(8)) == READ_BYTES
        assert len(reader.recv(2 * READ_BYTES)) == 2 * READ_BYTES


def test_all_else_is_the_sockets_own():
    near, far = socket.socketpair()
    with far:
        reader = WideReads(near)
        reader.settimeout(2.5)
        assert near.gettimeout() == 2.5
        reader.sendall(b"hello")
        assert far.recv(16) == b"hello"
        reader.close()
        assert far.recv(16) == b""


def test_connections_read_widely():
    class Connection:
        def __init__(self, stream, address):
            self.socket, self.address = stream, address

    use_wide_reads(Connection)
    near, far = socket.socketpair()
    with near, far:
        made = Connection(near, "there")
        far.sendall(bytes(100))
        assert made.socket.recv(8) == bytes(100)
        assert made.address == "there"
