"""The policy's section `dashboard`."""

from __future__ import annotations

import pytest

from controller.config import PolicyInvalid, load_policy
from controller.config.settings import Dashboard


def test_without_it_the_page_is_on_loopback_and_read_only() -> None:
    found = load_policy("version: 1\n").dashboard
    assert found == Dashboard(b"\x7f\0\0\1", 8181, "", "", "refused", "", "", "", "")


def test_every_setting_is_read() -> None:
    files = (
        "token_file: t, read_token_file: r, tokens_over_plain_http: accepted, certificate: c, key: k, workflows: w"
    )
    text = f"{{host: '::', port: 0, {files}, names: a.example b.example}}"
    found = load_policy(f"version: 1\ndashboard: {text}\n").dashboard
    assert found == Dashboard(bytes(16), 0, "t", "r", "accepted", "c", "k", "a.example b.example", "w")


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


@pytest.mark.parametrize("tokens", ["token_file", "read_token_file"])
@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "'::'", "2001:db8::1"])
def test_tokens_in_clear_are_a_fault_unless_accepted(tokens: str, host: str) -> None:
    lines = ["version: 1", "dashboard:", f"  {tokens}: t", f"  host: {host}"]
    with pytest.raises(PolicyInvalid) as caught:
        load_policy("\n".join(lines))
    (found,) = caught.value.errors
    assert (found.line, found.field) == (4, "dashboard.tokens_over_plain_http")
    assert found.message == (
        f"{host.strip(chr(39))} is not a loopback address, so tokens would cross the network in clear: set "
        "certificate and key, or a loopback address as host, or this to 'accepted'"
    )
    load_policy("\n".join([*lines, "  tokens_over_plain_http: accepted"]))
    load_policy("\n".join([*lines, "  certificate: c.pem", "  key: k.pem"]))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.0.1", "'::1'"])
def test_tokens_within_this_machine_are_no_fault(host: str) -> None:
    load_policy(f"version: 1\ndashboard: {{token_file: t, host: {host}}}\n")


@pytest.mark.parametrize(
    ("page", "prometheus"),
    [
        ("port: 9471", "stale_s: 300"),
        ("port: 7000", "port: 7000"),
        ("port: 7000, host: 0.0.0.0", "port: 7000"),
        ("port: 7000, host: 192.0.2.1", "port: 7000, address: 0.0.0.0"),
    ],
)
def test_page_and_prometheus_at_one_place_are_a_fault(page: str, prometheus: str) -> None:
    text = f"version: 1\nmonitor: {{prometheus: {{{prometheus}}}}}\ndashboard:\n  {{{page}}}\n"
    with pytest.raises(PolicyInvalid) as caught:
        load_policy(text)
    (found,) = caught.value.errors
    assert (found.line, found.field) == (4, "dashboard.port")
    assert found.message.startswith("page and API (dashboard, ")
    assert "cannot both listen on TCP port" in found.message


@pytest.mark.parametrize(
    ("page", "prometheus"),
    [
        ("port: 0", "port: 0"),
        ("port: 7000, host: '::'", "port: 7000"),
        ("port: 7000, host: 192.0.2.1", "port: 7000"),
        ("port: 7000", "port: 7000, enabled: false"),
    ],
)
def test_page_and_prometheus_at_two_places_are_no_fault(page: str, prometheus: str) -> None:
    assert (
        load_policy(f"version: 1\nmonitor: {{prometheus: {{{prometheus}}}}}\ndashboard: {{{page}}}\n").warnings == ()
    )


def test_prometheus_at_the_place_of_a_page_that_nobody_speaks_of_is_a_warning() -> None:
    (warning,) = load_policy("version: 1\nmonitor:\n  prometheus:\n    port: 8181\n").warnings
    assert (warning.line, warning.field) == (4, "monitor.prometheus.port")
