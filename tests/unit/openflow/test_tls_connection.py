"""A connection by TLS: what is said over it, who is let in, and what becomes of those who are not."""

from __future__ import annotations

import shutil
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from apps.openflow import connection as connection_module
from apps.openflow.connection import FEATURES_REPLY, Connection
from apps.openflow.framework import new_reactor
from apps.openflow.reactor import Reactor
from apps.openflow.switch_listener import SwitchListener
from apps.tls_files import ServerTls, SettingsInvalid, TlsFiles, server_context
from certificates import Authority, Identity, client_context

TIMEOUT_S = 20.0


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def controller(authority: Authority) -> Identity:
    return authority.issue("controller")


@pytest.fixture
def reactor() -> Iterator[Reactor]:
    made = new_reactor("test")
    yield made
    made.call(made.end)


class Server:
    """Listens, by TLS where that is given; keeps what came of each connection."""

    def __init__(self, reactor: Reactor, tls: ServerTls | None, sends: bytes = b"") -> None:
        self.are_up = tls is not None
        self.messages: list[bytes] = []
        self.refusals: list[str] = []
        self.ended_count = 0
        self.connections: list[Connection] = []
        self._reactor, self._sends = reactor, sends
        self.listener = SwitchListener(reactor, socket.socket, "127.0.0.1", 0, tls, self._connected)
        reactor.call(self.listener.begin)
        reactor.start()

    def connect(self) -> socket.socket:
        """Return the far end of a new connection, which is plain so far."""
        return socket.create_connection(("127.0.0.1", self.listener.port), TIMEOUT_S)

    def look_after(self) -> None:
        """Do what is done for connections now and then."""
        for each in self.connections:
            self._reactor.call(lambda each=each: each.look_after(self._reactor.now_s, 1.0, 0))

    def _connected(self, stream: Any, address: Any) -> None:
        datapath = SimpleNamespace(socket=stream, address=address, ofproto=SimpleNamespace(OFP_VERSION=4))
        taken = self._take, lambda _datapath, _data, at: at, lambda: None
        made = Connection(datapath, self._reactor, *taken, self._give, self._ended, self._refused, 5.0)
        made.is_up = self.are_up
        self.connections.append(made)
        made.begin()
        if self._sends:
            made.send(self._sends)

    def _take(self, _datapath: Any, _version: int, _kind: int, _xid: int, message: bytes) -> bool:
        self.messages.append(message)
        return True

    def _give(self, _datapath: Any, _version: int, _kind: int, _length: int, _xid: int, message: bytes) -> None:
        assert not self.are_up, "nothing is for the framework"
        self.messages.append(message)

    def _ended(self, _connection: Connection) -> None:
        self.ended_count += 1

    def _refused(self, _connection: Connection, reason: str) -> None:
        self.refusals.append(reason)


def message(body: bytes, xid: int) -> bytes:
    return struct.pack("!BBHI", 4, 20, 8 + len(body), xid) + body


def until(condition: Callable[[], Any]) -> None:
    ends_s = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < ends_s
        time.sleep(0.002)


def test_all_that_either_side_says_arrives_in_order(
    reactor: Reactor, authority: Authority, controller: Identity
) -> None:
    sends = b"".join(message(bytes([number]) * 60_000, number) for number in range(40))
    server = Server(reactor, ServerTls(TlsFiles(*controller, authority.certificate)), sends)
    said = [message(bytes([number]) * (number * 700), number) for number in range(90)]
    with client_context(authority, authority.issue("switch")).wrap_socket(server.connect()) as peer:
        teller = threading.Thread(target=peer.sendall, args=(b"".join(said),))
        teller.start()
        received = b""
        while len(received) < len(sends):
            received += peer.recv(1 << 16)
        teller.join(TIMEOUT_S)
        until(lambda: len(server.messages) == len(said))
    assert (received, server.messages) == (sends, said)
    until(lambda: server.ended_count)
    assert server.refusals == []


def test_a_peer_that_reads_nothing_for_a_while_gets_all_later(
    reactor: Reactor, authority: Authority, controller: Identity
) -> None:
    sends = message(bytes(60_000), 1) * 100
    server = Server(reactor, ServerTls(TlsFiles(*controller)))
    with client_context(authority, None).wrap_socket(server.connect()) as peer:
        peer.sendall(message(b"first", 1))
        until(lambda: server.messages)
        (connection,) = server.connections
        reactor.call(connection.send, sends)
        until(lambda: connection.waiting_bytes == 0 and connection.blocked_s is not None)
        peer.sendall(message(b"second", 2))
        until(lambda: len(server.messages) == 2)
        received = 0
        while received < len(sends):
            received += len(peer.recv(1 << 16))
        assert received == len(sends)


REFUSED = {
    "no certificate": "it showed no certificate",
    "another authority": "its certificate is not accepted: ",
    "expired": "its certificate is not accepted: certificate has expired",
    "plain": "it does not speak TLS",
    "gone": "it ended the connection during the TLS handshake",
    "does not trust us": "it does not accept the controller's certificate or offer: unknown ca",
}


@pytest.mark.parametrize("case", REFUSED)
def test_who_is_not_let_in_is_told_why_and_others_are(
    case: str, reactor: Reactor, authority: Authority, controller: Identity, tmp_path: Path
) -> None:
    server = Server(reactor, ServerTls(TlsFiles(*controller, authority.certificate)))
    other = Authority(tmp_path, "other")
    with client_context(authority, authority.issue("switch")).wrap_socket(server.connect()) as good:
        raw = server.connect()
        if case == "plain":
            raw.sendall(message(b"hello", 1))
        elif case == "gone":
            raw.close()
        else:
            identity = {"another authority": other.issue("stranger"), "expired": authority.issue("old", -1)}.get(case)
            trusts = other if case == "does not trust us" else authority
            if case == "does not trust us":
                identity = authority.issue("doubter")
            try:
                with client_context(trusts, identity).wrap_socket(raw) as peer:
                    assert peer.recv(1) == b""
            except OSError:
                pass  # either side may notice first
        until(lambda: server.refusals)
        assert [reason.startswith(REFUSED[case]) for reason in server.refusals] == [True], server.refusals
        until(lambda: server.ended_count == 1)
        raw.close()
        good.sendall(message(b"still here", 2))
        until(lambda: server.messages == [message(b"still here", 2)])


def test_who_speaks_tls_where_plain_tcp_is_taken_is_told_and_others_are_let_in(
    reactor: Reactor, authority: Authority
) -> None:
    server = Server(reactor, None)
    with server.connect() as good:
        good.sendall(message(b"hello", 1))
        until(lambda: server.messages)
        with (
            pytest.raises(OSError),
            client_context(authority, authority.issue("early")).wrap_socket(server.connect()),
        ):
            pass
        until(lambda: server.refusals)
        assert server.refusals == ["it speaks TLS, and this port takes plain TCP"]
        until(lambda: server.ended_count == 1)
        good.sendall(message(b"still here", 2))
        until(lambda: server.messages == [message(b"hello", 1), message(b"still here", 2)])


def test_a_handshake_that_comes_to_no_end_is_given_up(
    reactor: Reactor, controller: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "HANDSHAKE_S", 0.0)
    server = Server(reactor, ServerTls(TlsFiles(*controller)))
    with server.connect():
        until(lambda: server.connections)
        server.look_after()
        until(lambda: server.ended_count == 1)
    assert server.refusals == ["it did not end its TLS handshake within 0 s"]


def test_files_that_are_replaced_count_from_the_next_connection_on(
    reactor: Reactor, authority: Authority, controller: Identity, tmp_path: Path
) -> None:
    certificate, key = (Path(shutil.copy(path, tmp_path)) for path in controller)
    tls = ServerTls(TlsFiles(certificate, key))
    server = Server(reactor, tls)

    def shown() -> bytes | None:
        with client_context(authority, None).wrap_socket(server.connect()) as peer:
            return peer.getpeercert(binary_form=True)

    def certificate_of(identity: Identity) -> bytes:
        return ssl.PEM_cert_to_DER_cert(identity.certificate.read_text())

    assert shown() == certificate_of(controller)
    with client_context(authority, None).wrap_socket(server.connect()) as lasting:
        later = authority.issue("later")
        shutil.copy(later.certificate, certificate)
        assert shown() == certificate_of(controller)
        assert tls.fault == f"certificate: {certificate} with key {key}: key values mismatch"
        shutil.copy(later.key, key)
        assert shown() == certificate_of(later)
        assert tls.fault is None
        lasting.sendall(message(b"as before", 1))
        until(lambda: server.messages)


def test_a_certificate_that_has_expired_is_refused_and_one_in_use_told(
    authority: Authority, controller: Identity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expired = authority.issue("over", days=-1)
    with pytest.raises(SettingsInvalid, match=f"certificate: {expired.certificate}: certificate has expired"):
        ServerTls(TlsFiles(*expired, authority.certificate))
    early = authority.issue("early", since="20900101000000Z")
    with pytest.raises(SettingsInvalid, match=f"certificate: {early.certificate}: certificate is not yet valid"):
        server_context(TlsFiles(*early))
    certificate, key = (Path(shutil.copy(path, tmp_path)) for path in controller)
    tls = ServerTls(TlsFiles(certificate, key, authority.certificate))
    before = tls.context()
    shutil.copy(expired.key, key)
    shutil.copy(expired.certificate, certificate)
    assert tls.context() is before
    assert tls.fault == f"certificate: {certificate}: certificate has expired"
    later = authority.issue("in-time")
    shutil.copy(later.key, key)
    shutil.copy(later.certificate, certificate)
    assert tls.context() is not before
    assert tls.fault is None
    tomorrow_s = time.time() + 86400 + 1
    monkeypatch.setattr("apps.tls_files.time.time", lambda: tomorrow_s)
    assert tls.fault == f"certificate: {certificate}: certificate has expired"


def test_a_peer_whose_certificate_is_revoked_is_not_let_in_from_the_next_list_on(
    reactor: Reactor, authority: Authority, controller: Identity, tmp_path: Path
) -> None:
    good, lost = authority.issue("good"), authority.issue("lost")
    crl = Path(shutil.copy(authority.revocations(), tmp_path / "lists.pem"))
    server = Server(reactor, ServerTls(TlsFiles(*controller, authority.certificate, crl)))

    def say(identity: Identity) -> None:
        count = len(server.messages)
        with client_context(authority, identity).wrap_socket(server.connect()) as peer:
            peer.sendall(message(b"hello", 1))
            until(lambda: len(server.messages) > count or server.refusals)

    for identity in (good, lost):
        say(identity)
    assert not server.refusals
    shutil.copy(authority.revocations(lost), crl)
    say(good)
    assert not server.refusals
    with suppress(OSError):
        say(lost)
    until(lambda: server.refusals)
    assert server.refusals == ["its certificate is not accepted: certificate revoked"]


def test_only_who_is_named_is_let_in_and_a_changed_list_counts_from_the_next_connection_on(
    reactor: Reactor, authority: Authority, controller: Identity, tmp_path: Path
) -> None:
    by_subject, by_dns = authority.issue("leaf1 id:77"), authority.issue("other", at="DNS:leaf2.example.org")
    names = tmp_path / "names.txt"
    names.write_text("# switches of the first room\n\n  leaf1 id:*\nleaf*.example.org\n")
    tls = ServerTls(TlsFiles(*controller, authority.certificate, names=names))
    server = Server(reactor, tls)

    def is_let_in(identity: Identity) -> bool:
        messages, refused = len(server.messages), len(server.refusals)
        with suppress(OSError), client_context(authority, identity).wrap_socket(server.connect()) as peer:
            peer.sendall(message(b"hello", 1))
            until(lambda: len(server.messages) > messages or len(server.refusals) > refused)
        until(lambda: len(server.messages) > messages or len(server.refusals) > refused)
        return len(server.messages) > messages

    assert is_let_in(by_subject)
    assert is_let_in(by_dns)
    stranger = authority.issue("leaf10 id:77", at="DNS:leaf2.example.com,IP:192.0.2.7")
    assert not is_let_in(stranger)
    text = f"its certificate is for leaf10 id:77 and leaf2.example.com, whom {names} does not name"
    assert server.refusals == [text]
    names.write_text("leaf10 *\n")
    assert is_let_in(stranger)
    assert not is_let_in(by_subject)
    names.write_text("\n# nobody yet\n")
    assert is_let_in(stranger), "what was read before stays in use"
    assert tls.fault == f"names: {names} has no name, so that no peer would be let in"


def test_a_certificate_speaks_for_the_datapath_id_that_it_is_bound_to_and_others_are_not_disturbed(
    reactor: Reactor, authority: Authority, controller: Identity, tmp_path: Path
) -> None:
    names = tmp_path / "names.txt"
    names.write_text("leaf1 = 0x11\nleaf2 = 0x12\n")
    server = Server(reactor, ServerTls(TlsFiles(*controller, authority.certificate, names=names)))
    server.are_up = False
    leaf1, leaf2 = authority.issue("leaf1"), authority.issue("leaf2")

    def features(dpid: int, xid: int) -> bytes:
        return struct.pack("!BBHIQQQ", 4, FEATURES_REPLY, 32, xid, dpid, 0, 0)

    with (
        client_context(authority, leaf1).wrap_socket(server.connect()) as own,
        client_context(authority, leaf2).wrap_socket(server.connect()) as false,
    ):
        own.sendall(features(0x11, 1))
        until(lambda: server.messages == [features(0x11, 1)])
        false.sendall(features(0x12, 2) + features(0x11, 3) + message(b"more", 4))
        until(lambda: server.refusals)
        assert false.recv(1) == b""
        text = "it says that it is 0000000000000011, and its certificate is for leaf2"
        assert server.refusals == [f"{text}, which line 2 of {names} binds to another datapath id"]
        own.sendall(message(b"hello", 5))
        until(lambda: len(server.messages) == 3)
    assert server.messages == [features(0x11, 1), features(0x12, 2), message(b"hello", 5)]
    until(lambda: server.ended_count == 2)
