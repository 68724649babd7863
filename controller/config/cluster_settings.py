"""Settings of controllers that share a fabric, and how they are read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address

from controller.config.declarations import SettingType, integer, number, other
from controller.config.terms import parse_host_port

NO_ENGINE = "none"
ETCD = "etcd"
ENGINES = (NO_ENGINE, ETCD)

_FABRIC = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}\Z")


@dataclass(frozen=True, slots=True)
class Cluster:
    """By which store several controllers of one fabric agree on who leads, and when one is given up."""

    engine: str = other(
        SettingType.CHOICE, NO_ENGINE, "The store that the controllers share; `none`: this one is alone.", ENGINES
    )
    endpoints: str = other(
        SettingType.TEXT,
        "",
        "Addresses of etcd's servers, `http://HOST:PORT` or `https://HOST:PORT`, with spaces between.",
    )
    fabric: str = other(
        SettingType.TEXT, "default", "Name of the fabric, by which several can share one store: its keys have it."
    )
    lease_s: int = integer(3, 2, 60, "s", "Time after which the store itself gives up a member that says nothing.")
    silence_s: float = number(
        0.5, 0.1, 1.9, "s", "Time without a word of the leader after which others challenge it."
    )
    stall_s: float = number(15, 1, 600, "s", "Time without progress of its own loop after which a leader gives way.")
    ca: str = other(
        SettingType.TEXT,
        "",
        "Certificates (PEM) that those of etcd's servers are checked by; the system's where absent.",
    )
    certificate: str = other(SettingType.TEXT, "", "Certificate (PEM) that etcd's servers are shown.")
    key: str = other(
        SettingType.TEXT, "", "The certificate's private key (PEM, no passphrase), not readable by others."
    )
    password_file: str = other(
        SettingType.TEXT, "", "File with `USER:PASSWORD` for etcd, readable by the controller's user alone."
    )


def endpoint_problem(endpoint: str) -> str | None:
    """Return why a text is no address of a server of etcd, None where it is one."""
    scheme, separator, place = endpoint.partition("://")
    try:
        parse_host_port(place)
    except ValueError:
        separator = ""
    if separator and scheme in ("http", "https") and not re.search(r"[/?#@\s]", place):
        return None
    return f"{endpoint!r} is neither http://HOST:PORT nor https://HOST:PORT"


def is_fabric_name(text: str) -> bool:
    """Tell whether a text can name a fabric: a letter or digit, then up to 62 of these, dots, ``_`` and ``-``."""
    return _FABRIC.match(text) is not None


def crosses_in_clear(endpoint: str) -> bool:
    """Tell whether what is said to a server of etcd, passwords too, crosses a network without TLS."""
    scheme, _, place = endpoint.partition("://")
    host, _ = parse_host_port(place)
    try:
        return scheme == "http" and not ip_address(host).is_loopback
    except ValueError:
        return scheme == "http" and host != "localhost"
