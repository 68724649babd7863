"""The policy's section `dashboard`."""

from __future__ import annotations

import pytest

from controller.config import PolicyInvalid, load_policy
from controller.config.settings import Dashboard


def test_without_it_the_page_is_on_loopback_and_read_only() -> None:
    found = load_policy("version: 1\n").dashboard
    assert found == Dashboard(b"\x7f\0\0\1", 8181, "", "", "refused", "", "", "")


def test_every_setting_is_read() -> None:
    files = "token_file: t, read_token_file: r, tokens_over_plain_http: accepted, certificate: c, key: k"
    text = f"{{host: '::', port: 0, {files}, names: a.example b.example}}"
    found = load_policy(f"version: 1\ndashboard: {text}\n").dashboard
    assert found == Dashboard(bytes(16), 0, "t", "r", "accepted", "c", "k", "a.example b.example")


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        (["host: fabric.example"], (3, "dashboard.host", "expected an IP address, found 'fabric.example'")),
        (["host: 239.1.1.1"], (3, "dashboard.host", "expected an IP address, found 239.1.1.1")),
        (["port: 65536"], (3, "dashboard.port", "65536 is not within 0 and 65535")),
        (["port: 1", "key: k.pem"], (4, "dashboard.certificate", "missing, while key is there")),
        (["certificate: c.pem"], (3, "dashboard.key", "missing, while certificate is there")),
        (
            ["tokens_over_plain_http: true"],
            (3, "dashboard.tokens_over_plain_http", "expected one of refused, accepted, found the boolean 'true'"),
        ),
        (["tokenfile: t"], (3, "dashboard.tokenfile", "unknown key; did you mean 'token_file'?")),
    ],
)
def test_faults_name_line_and_field(lines: list[str], fault: tuple[int, str, str]) -> None:
    text = "\n".join(["version: 1", "dashboard:", *(f"  {line}" for line in lines)])
    with pytest.raises(PolicyInvalid) as caught:
        load_policy(text)
    (found,) = caught.value.errors
    assert (found.line, found.field, found.message) == fault
