"""Certificate revocation lists (RFC 5280, 5) as far as a server has to know them: until when each is good."""

from __future__ import annotations

import base64
import binascii
import re
from datetime import UTC, datetime
from math import inf

_PEM = re.compile(r"-----BEGIN X509 CRL-----\s+([A-Za-z0-9+/=\s]+)-----END X509 CRL-----")
_INTEGER, _UTC_TIME, _GENERALIZED_TIME, _SEQUENCE = 0x02, 0x17, 0x18, 0x30


def next_update_s(text: str) -> float:
    """Return when the first of the lists in a PEM file is out of date, in seconds since 1970; infinity for never.

    ValueError where the file has no list, or one that cannot be read.
    """
    bodies = _PEM.findall(text)
    if not bodies:
        raise ValueError("the file has no revocation list (X509 CRL)")
    try:
        return min(_next_update_s(base64.b64decode(body)) for body in bodies)
    except (IndexError, binascii.Error, UnicodeDecodeError) as error:
        raise ValueError("the revocation list cannot be read") from error


def _next_update_s(der: bytes) -> float:
    """Return when a list is out of date, by its field nextUpdate (RFC 5280, 5.1.2.5)."""
    for _ in ("CertificateList", "TBSCertList"):
        tag, der, _rest = _element(der)
        if tag != _SEQUENCE:
            raise ValueError("the revocation list cannot be read")
    fields: list[tuple[int, bytes]] = []
    while der and len(fields) < 5:
        tag, value, der = _element(der)
        if tag != _INTEGER:  # the version, which may be left out
            fields.append((tag, value))
    times = [_time_s(*field) for field in fields[2:4] if field[0] in (_UTC_TIME, _GENERALIZED_TIME)]
    if not times:
        raise ValueError("the revocation list cannot be read")
    return times[1] if len(times) > 1 else inf


def _element(der: bytes) -> tuple[int, bytes, bytes]:
    """Return the tag and the contents of the first element, and what follows it; IndexError where it is cut short."""
    length, start = der[1], 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(der[2:start], "big")
    if len(der) < start + length:
        raise IndexError
    return der[0], der[start : start + length], der[start + length :]


def _time_s(tag: int, value: bytes) -> float:
    """Return a time in seconds since 1970; years of two digits are 1950 to 2049 (RFC 5280, 5.1.2.4)."""
    text = value.decode("ascii")
    if tag == _UTC_TIME:
        text = ("19" if text[:2] >= "50" else "20") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()
