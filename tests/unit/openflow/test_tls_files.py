"""The files of a server of TLS: what is wrong with them is told, and what is read of them holds for connections."""

from __future__ import annotations

import os
import pty
import shutil
import ssl
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from apps.tls_files import ServerTls, SettingsInvalid, TlsFiles, server_context
from certificates import Authority, Identity, client_context, openssl


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def controller(authority: Authority) -> Identity:
    return authority.issue("controller")


def locked_key(identity: Identity, directory: Path) -> Path:
    """Return a key that takes a password."""
    locked = directory / "locked.key"
    openssl("pkey", "-in", identity.key, "-aes256", "-passout", "pass:secret", "-out", locked)
    locked.chmod(0o600)
    return locked


def spoken(context: ssl.SSLContext, client: ssl.SSLContext) -> tuple[str | None, str | None]:
    """Return the version and the cipher that a server and a client agree on; ssl.SSLError where they do not."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client.wrap_bio(to_client, to_server)
    far = context.wrap_bio(to_server, to_client, server_side=True)
    for side in (near, far, near, far, near):
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()
    cipher = near.cipher()
    return near.version(), None if cipher is None else cipher[0]


def test_a_list_that_is_out_of_date_is_refused_and_one_in_use_told(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = authority.issue("lasting", days=36500)
    over = authority.revocations(until="20200102000000Z")
    outdated = "the revocation list is out of date, so that no peer is let in"
    with pytest.raises(SettingsInvalid, match=f"crl: {over}: {outdated}"):
        server_context(TlsFiles(*controller, authority.certificate, over))
    crl = tmp_path / "lists.pem"
    shutil.copy(authority.revocations(), crl)
    tls = ServerTls(TlsFiles(*controller, authority.certificate, crl))
    before = tls.context()
    crl.write_text("no list\n")
    assert tls.context() is before
    assert tls.fault == f"crl: {crl}: the file has no revocation list (X509 CRL)"
    shutil.copy(authority.revocations(until="20490101000000Z"), crl)
    assert tls.context() is not before
    assert tls.fault is None
    monkeypatch.setattr("apps.tls_files.time.time", lambda: 2493072001.0)
    assert tls.fault == f"crl: {crl}: {outdated}"


def test_files_that_are_no_good_are_told_with_their_place(
    authority: Authority, controller: Identity, tmp_path: Path
) -> None:
    other = authority.issue("another")
    junk = tmp_path / "junk.pem"
    junk.write_text("no certificate\n")
    junk.chmod(0o600)
    open_key = Path(shutil.copy(controller.key, tmp_path / "open.key"))
    open_key.chmod(0o644)
    missing = tmp_path / "missing.pem"
    empty, binary, unbound = (tmp_path / name for name in ("empty.txt", "binary.txt", "unbound.txt"))
    empty.write_text("# nobody\n")
    unbound.write_text("leaf = x\n")
    binary.write_bytes(b"leaf\xff\n")
    locked = locked_key(controller, tmp_path)
    pipe = tmp_path / "pipe.key"
    os.mkfifo(pipe, 0o600)
    cases = {
        TlsFiles(controller.certificate, tmp_path): f"key: {tmp_path} is no file",
        TlsFiles(controller.certificate, locked): f"certificate: {controller.certificate} with key {locked}: ",
        TlsFiles(controller.certificate, other.key): f"certificate: {controller[0]} with key {other.key}: key",
        TlsFiles(junk, controller.key): f"certificate: {junk} with key {controller.key}: ",
        TlsFiles(missing, controller.key): f"certificate: {missing} with key {controller.key}: No such file",
        TlsFiles(controller.certificate, missing): f"key: {missing}: No such file or directory",
        TlsFiles(controller.certificate, open_key): f"key: {open_key} may be read by others, or written by its group"
        f" (mode 0644): chmod 600 {open_key}",
        TlsFiles(controller.certificate, pipe): f"key: {pipe} is no file",
        TlsFiles(*controller, missing): f"ca: {missing}: No such file or directory",
        TlsFiles(*controller, junk): f"ca: {junk}: ",
        TlsFiles(*controller, authority.certificate, missing): f"crl: {missing}: No such file or directory",
        TlsFiles(*controller, authority.certificate, junk): f"crl: {junk}: the file has no revocation list",
        TlsFiles(*controller, None, authority.revocations()): "crl: ",
        TlsFiles(*controller, authority.certificate, names=missing): f"names: {missing}: No such file or directory",
        TlsFiles(*controller, authority.certificate, names=empty): f"names: {empty} has no name",
        TlsFiles(*controller, authority.certificate, names=unbound): f"names: {unbound}: line 1: 'x' is no datapath",
        TlsFiles(*controller, authority.certificate, names=binary): f"names: {binary} is no text in UTF-8",
        TlsFiles(*controller, names=junk): f"names: {junk}: names are vouched for by an authority",
    }
    for files, text in cases.items():
        with pytest.raises(SettingsInvalid) as raised:
            server_context(files)
        assert str(raised.value).startswith(text)
    with pytest.raises(SettingsInvalid, match="ciphers: 'nonsense' names none that OpenSSL has"):
        server_context(TlsFiles(*controller), "nonsense")


@pytest.mark.parametrize(
    ("mode", "is_private"), [(0o600, True), (0o640, True), (0o620, False), (0o610, True), (0o601, False)]
)
def test_a_key_is_refused_that_its_group_may_write_or_others_may_use(
    controller: Identity, tmp_path: Path, mode: int, is_private: bool
) -> None:
    key = Path(shutil.copy(controller.key, tmp_path / "own.key"))
    key.chmod(mode)
    if is_private:
        assert ServerTls(TlsFiles(controller.certificate, key)).fault is None
        return
    with pytest.raises(SettingsInvalid, match=f"chmod 600 {key}"):
        ServerTls(TlsFiles(controller.certificate, key))


def test_what_was_read_stays_in_use_while_a_file_is_away(controller: Identity, tmp_path: Path) -> None:
    certificate, key = (Path(shutil.copy(path, tmp_path)) for path in controller)
    tls = ServerTls(TlsFiles(certificate, key))
    before = tls.context()
    key.rename(tmp_path / "away")
    assert tls.context() is before
    assert tls.fault == f"key: {key}: No such file or directory"
    (tmp_path / "away").rename(key)
    assert tls.context() is not before
    assert tls.fault is None


def test_a_name_counts_as_common_name_or_in_the_dns_and_nowhere_else_in_a_certificate(
    authority: Authority, controller: Identity, tmp_path: Path
) -> None:
    names = tmp_path / "names.txt"
    names.write_text("leaf1\n")
    tls = ServerTls(TlsFiles(*controller, authority.certificate, names=names))
    unit, other = (("organizationalUnitName", "leaf1"),), (("commonName", "other"),)
    addresses = (("email", "leaf1"), ("IP Address", "leaf1"), ("URI", "leaf1"))
    text = f"its certificate is for other, whom {names} does not name"
    assert tls.refusal({"subject": (unit, other), "subjectAltName": addresses}) == text
    assert tls.refusal({"subject": (other,), "subjectAltName": (*addresses, ("DNS", "leaf1"))}) is None
    assert tls.refusal({"subject": (unit, (("commonName", "leaf1"),))}) is None
    assert tls.refusal(None) is not None


def test_ciphers_are_those_of_the_setting_after_files_are_replaced_too(
    authority: Authority, controller: Identity, tmp_path: Path
) -> None:
    certificate, key = (Path(shutil.copy(path, tmp_path)) for path in controller)
    wanted, other = "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384"
    tls = ServerTls(TlsFiles(certificate, key), wanted)
    either, another = client_context(authority, None), client_context(authority, None)
    either.maximum_version = another.maximum_version = ssl.TLSVersion.TLSv1_2
    either.set_ciphers(f"{other}:{wanted}")
    another.set_ciphers(other)
    for identity in (controller, authority.issue("renewed")):
        for source, target in zip(identity, (certificate, key), strict=True):
            shutil.copy(source, target)
        assert spoken(tls.context(), either) == ("TLSv1.2", wanted)
        assert tls.fault is None
        with pytest.raises(ssl.SSLError, match=r"(?i)no shared cipher"):
            spoken(tls.context(), another)


def test_versions_before_1_2_are_not_spoken_whatever_the_ciphers_allow(
    authority: Authority, controller: Identity
) -> None:
    weakest = "ALL:@SECLEVEL=0"
    client = client_context(authority, None)
    client.set_ciphers(weakest)
    with pytest.deprecated_call():
        client.minimum_version, client.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError, match=r"(?i)unsupported protocol"):
        spoken(server_context(TlsFiles(*controller), weakest), client)


def test_where_the_system_allows_tls_1_2_at_most_a_server_speaks_it_and_tells_when_its_certificate_expires(
    authority: Authority, controller: Identity, tmp_path: Path
) -> None:
    settings = tmp_path / "openssl.cnf"
    settings.write_text(
        "openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\nsystem_default = tls\n[tls]\nMaxProtocol = TLSv1.2\n"
    )
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from apps.tls_files import ServerTls, TlsFiles\n"
        "tls = ServerTls(TlsFiles(*map(Path, sys.argv[1:])))\n"
        "print(tls.context().maximum_version, tls.fault)\n"
        "now = time.time\n"
        "time.time = lambda: now() + 86401\n"
        "print(tls.fault)\n"
    )
    for ca in ((), (authority.certificate,)):
        command = [sys.executable, "-c", program, *controller, *ca]
        made = subprocess.run(
            command, env={**os.environ, "OPENSSL_CONF": str(settings)}, capture_output=True, text=True, check=False
        )
        assert made.stderr == ""
        allowed, fault = made.stdout.splitlines()
        assert allowed == f"{int(ssl.TLSVersion.TLSv1_2)} None"
        assert fault == f"certificate: {controller.certificate}: certificate has expired"


def test_nobody_is_asked_for_the_password_of_a_key(controller: Identity, tmp_path: Path) -> None:
    locked = locked_key(controller, tmp_path)
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from apps.tls_files import SettingsInvalid, TlsFiles, server_context\n"
        "try:\n"
        "    server_context(TlsFiles(*map(Path, sys.argv[1:])))\n"
        "except SettingsInvalid as error:\n"
        "    print(error)\n"
    )
    child, terminal = pty.fork()
    if not child:
        os.execv(sys.executable, [sys.executable, "-c", program, str(controller.certificate), str(locked)])
    said = b""
    with suppress(OSError):  # of a terminal that nobody has open any more
        while b"pass phrase" not in said and (more := os.read(terminal, 4096)):
            said += more
    os.close(terminal)
    os.waitpid(child, 0)
    assert said.decode().startswith(f"certificate: {controller.certificate} with key {locked}: ")


def test_a_file_is_read_again_once_its_time_its_size_or_the_file_itself_is_another(
    authority: Authority, controller: Identity, tmp_path: Path
) -> None:
    names = tmp_path / "names.txt"
    tls_of = {"subject": ((("commonName", "leaf1"),),)}
    times_ns = (10**18, 10**18)

    def write(text: str, path: Path = names) -> None:
        path.write_text(text)
        os.utime(path, ns=times_ns)

    def is_let_in() -> bool:
        tls.look()
        return tls.refusal(tls_of) is None

    write("leaf1\n")
    tls = ServerTls(TlsFiles(*controller, authority.certificate, names=names))
    assert is_let_in()
    names.write_text("leaf2\n")
    assert not is_let_in(), "another time"
    write("leaf2\n")
    assert not is_let_in()
    write("leaf1\nleaf2\n")
    assert is_let_in(), "another size"
    other = tmp_path / "other.txt"
    write("leaf3\nleaf2\n", other)
    other.rename(names)
    assert not is_let_in(), "another file"


def test_peers_of_another_authority_are_let_in_from_the_moment_that_its_certificate_is_there(
    authority: Authority, controller: Identity, tmp_path: Path
) -> None:
    ca = Path(shutil.copy(authority.certificate, tmp_path / "ca.pem"))
    tls = ServerTls(TlsFiles(*controller, ca))
    (tmp_path / "next").mkdir()
    later = Authority(tmp_path / "next", "later")
    client = client_context(authority, later.issue("switch"))
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLCertVerificationError):
        spoken(tls.context(), client)
    ca.write_bytes(later.certificate.read_bytes())
    assert spoken(tls.context(), client)[0] == "TLSv1.2"
