"""Syslog messages as RFC 5424 writes them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import IntEnum

MAX_BYTES = 2048
"""What every receiver should take (RFC 5424, 6.1); a longer message is cut at a character's end."""

_BOM = b"\xef\xbb\xbf"
_NIL = "-"


class SyslogSeverity(IntEnum):
    """RFC 5424, 6.2.1."""

    EMERGENCY = 0
    ALERT = 1
    CRITICAL = 2
    ERROR = 3
    WARNING = 4
    NOTICE = 5
    INFORMATIONAL = 6
    DEBUG = 7


def message(
    text: str,
    *,
    severity: SyslogSeverity,
    facility: int,
    at_s: float,
    host: str,
    app: str,
    pid: int,
    message_id: str,
    data_id: str,
    data: Mapping[str, object],
) -> bytes:
    """Return one syslog message of at most `MAX_BYTES`.

    Parameters
    ----------
    text
        The words for people.
    severity, facility
        Together the priority; the facility is 0 to 23.
    at_s
        Time in seconds since the epoch.
    host, app, pid, message_id
        The header's fields; what may not stand there is replaced by ``_``.
    data_id, data
        Name and parameters of the structured data's one element.

    Notes
    -----
    RFC 5424, 6: header, structured data with ``"``, ``\\`` and ``]`` escaped, then the text as UTF-8 with its byte
    order mark. Only the text is cut where the message is too long.
    """
    if not 0 <= facility <= 23:
        raise ValueError(f"a syslog facility is 0 to 23, not {facility}")
    stamp = datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ") if math.isfinite(at_s) else _NIL
    header = (
        f"<{facility * 8 + severity}>1 {stamp} {_field(host, 255)} {_field(app, 48)} {pid} {_field(message_id, 32)} "
    )
    elements = "".join(f' {_name(name)}="{_escape(str(value))}"' for name, value in data.items())
    head = f"{header}[{data_id}{elements}] ".encode() + _BOM
    return head + _cut(" ".join(text.splitlines()).encode("utf-8", "replace"), max(0, MAX_BYTES - len(head)))


def _field(value: str, longest: int) -> str:
    """A header's field: printable ASCII without spaces, never empty."""
    return "".join(c if "!" <= c <= "~" else "_" for c in value[:longest]) or _NIL


def _name(value: str) -> str:
    """A parameter's name: 32 printable ASCII characters without ``=``, ``]``, ``"`` and spaces."""
    return "".join(c if "!" <= c <= "~" and c not in '=]"' else "_" for c in value[:32])


def _escape(value: str) -> str:
    printable = "".join(c if c.isprintable() else " " for c in value[:128])
    return printable.encode("utf-8", "replace").decode().replace("\\", "\\\\").replace('"', '\\"').replace("]", "\\]")


def _cut(encoded: bytes, longest: int) -> bytes:
    return encoded[:longest].decode("utf-8", "ignore").encode()
