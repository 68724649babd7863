"""The section `cluster`."""

from __future__ import annotations

import pytest

from controller.config import PolicyInvalid, load_policy
from controller.config.cluster_settings import Cluster

HEAD = "version: 1\ncluster:\n"
ETCD = f"{HEAD}  engine: etcd\n  endpoints: http://127.0.0.1:2379\n"


def faults(text: str) -> list[tuple[int, str, str]]:
    with pytest.raises(PolicyInvalid) as error:
        load_policy(text)
    return [(fault.line, fault.field, fault.message) for fault in error.value.errors]


def test_without_the_section_a_controller_is_alone():
    policy = load_policy("version: 1\n")
    assert policy.cluster == Cluster()
    assert (policy.cluster.engine, policy.warnings) == ("none", ())


def test_all_settings_are_read():
    text = (
        f"{HEAD}  engine: etcd\n  endpoints: https://one:2379 https://[fd00::2]:2379\n"
        "  fabric: hall-2\n  lease_s: 5\n  silence_s: 1.5\n  stall_s: 30\n"
        "  ca: ca.pem\n  certificate: me.pem\n  key: me.key\n  password_file: secret\n"
    )
    assert load_policy(text).cluster == Cluster(
        "etcd",
        "https://one:2379 https://[fd00::2]:2379",
        "hall-2",
        *(5, 1.5, 30, "ca.pem", "me.pem", "me.key", "secret"),
    )


@pytest.mark.parametrize(
    "endpoint",
    [
        *("127.0.0.1:2379", "http://127.0.0.1", "ftp://127.0.0.1:21", "http://127.0.0.1:0", "http://:2379"),
        *("http://me:mine@one:2379", "http://one:2379/v3", "http://one:2379?", "https://one:65536"),
    ],
)
def test_an_endpoint_is_an_address(endpoint: str):
    text = f"{HEAD}  engine: etcd\n  endpoints: http://127.0.0.1:2379 {endpoint}\n"
    message = f"{endpoint!r} is neither http://HOST:PORT nor https://HOST:PORT"
    assert faults(text) == [(4, "cluster.endpoints", message)]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "version: 1\nmonitor:\n  share: cluster\n",
            (3, "cluster.engine", "missing, while monitor.share is cluster"),
        ),
        (f"{HEAD}  engine: etcd\n", (3, "cluster.endpoints", "missing, while engine is etcd")),
        (f"{ETCD}  certificate: me.pem\n", (5, "cluster.key", "missing, while certificate is there")),
        (f"{ETCD}  key: me.key\n", (5, "cluster.certificate", "missing, while key is there")),
        (
            f"{ETCD}  fabric: a/b\n",
            (
                5,
                "cluster.fabric",
                "'a/b' cannot name a fabric: "
                "a letter or digit, then up to 62 of these, dots, underscores and hyphens",
            ),
        ),
        (
            f"{HEAD}  engine: etcd\n  endpoints: http://10.0.0.1:2379\n  password_file: secret\n",
            (
                5,
                "cluster.password_file",
                "the password would cross the network to http://10.0.0.1:2379 in clear: use https://",
            ),
        ),
        (
            f"{HEAD}  endpoints: {' '.join(['http://a:1'] * 17)}\n",
            (3, "cluster.endpoints", "17 addresses; at most 16 are supported"),
        ),
    ],
)
def test_what_does_not_go_together_is_a_fault_with_its_line(text: str, fault: tuple[int, str, str]):
    assert faults(text) == [fault]


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:2379", "http://localhost:2379", "http://[::1]:2379"])
def test_a_password_may_stay_on_the_machine(endpoint: str):
    load_policy(f"{HEAD}  engine: etcd\n  endpoints: {endpoint}\n  password_file: secret\n")
