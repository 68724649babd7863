"""CPU and memory of Open vSwitch switches, from their database (RFC 7047; `statistics` in ovs-vswitchd.conf.db(5)).

Open vSwitch keeps these where it is told to: ``ovs-vsctl set Open_vSwitch . other_config:enable-statistics=true``.
"""

from __future__ import annotations

import json
from socket import AF_INET, AF_INET6, AF_UNIX, AddressFamily
from typing import Any, NamedTuple

from apps.system import system_socket
from controller.config.terms import is_ovsdb_target, parse_host_port

TIMEOUT_S = 5.0
REPLY_BYTES = 4 << 20
PROCESS = "process_ovs-vswitchd"

_QUESTION = json.dumps(
    {
        "id": 1,
        "method": "transact",
        "params": [
            "Open_vSwitch",
            {"op": "select", "table": "Open_vSwitch", "where": [], "columns": ["statistics"]},
            {"op": "select", "table": "Bridge", "where": [], "columns": ["datapath_id"]},
        ],
    }
).encode()


class OvsdbFault(Exception):  # noqa: N818
    """The database could not be asked, or its answer makes no sense; the text says why."""


class SwitchUse(NamedTuple):
    """How busy the machine of some switches is.

    `cpu_pct` is the share of all its processors that ovs-vswitchd had since the last reading, None at the first one;
    `memory_pct` the share of its memory that cannot be given to others. None where it is not told.
    """

    dpids: tuple[int, ...]
    cpu_pct: float | None
    memory_pct: float | None


def address_of(target: str) -> tuple[AddressFamily, Any]:
    """Return the family and address of a server, ``unix:PATH`` or ``tcp:HOST:PORT``; ValueError for anything else."""
    if not is_ovsdb_target(target):
        raise ValueError(f"{target!r} is neither unix:PATH nor tcp:HOST:PORT")
    kind, _, rest = target.partition(":")
    if kind == "unix":
        return AF_UNIX, rest
    address = parse_host_port(rest)
    return (AF_INET6 if ":" in address[0] else AF_INET), address


class Ovsdb:
    """Asks one database; `target` is ``unix:PATH`` or ``tcp:HOST:PORT``, ValueError for anything else."""

    def __init__(self, target: str) -> None:
        self._family, self._address = address_of(target)
        self._before: tuple[float, float] | None = None

    def read(self) -> SwitchUse:
        """Ask the database; its thread waits for it at most some seconds. OvsdbFault where that fails."""
        answer = self._ask()
        try:
            system, bridges = answer["result"][:2]
            statistics = dict(system["rows"][0]["statistics"][1])
            dpids = tuple(
                int(row["datapath_id"], 16) for row in bridges["rows"] if isinstance(row["datapath_id"], str)
            )
            return SwitchUse(dpids, self._cpu_pct(statistics), _memory_pct(statistics))
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise OvsdbFault(f"OVSDB: an answer that makes no sense ({type(error).__name__}: {error})") from error

    def _ask(self) -> Any:
        content = b""
        try:
            with system_socket.socket(self._family, system_socket.SOCK_STREAM) as connection:
                connection.settimeout(TIMEOUT_S)
                connection.connect(self._address)
                connection.sendall(_QUESTION)
                while len(content) < REPLY_BYTES:
                    more = connection.recv(65536)
                    if not more:
                        break
                    content += more
                    try:
                        return json.loads(content)
                    except ValueError:
                        continue
        except OSError as error:
            raise OvsdbFault(f"OVSDB: {error.strerror or error}") from error
        raise OvsdbFault("OVSDB: the connection ended within an answer")

    def _cpu_pct(self, statistics: dict[str, str]) -> float | None:
        """CPU time of the process over its own age, both as of the same moment."""
        if PROCESS not in statistics or "cpu" not in statistics:
            return None
        fields = [float(field) for field in statistics[PROCESS].split(",")]
        busy_ms, age_ms = fields[2], fields[5]
        before, self._before = self._before, (busy_ms, age_ms)
        if before is None or age_ms <= before[1] or busy_ms < before[0]:
            return None
        return 100.0 * (busy_ms - before[0]) / (age_ms - before[1]) / max(1.0, float(statistics["cpu"]))


def _memory_pct(statistics: dict[str, str]) -> float | None:
    if "memory" not in statistics:
        return None
    total, used, reclaimable = (float(field) for field in statistics["memory"].split(",")[:3])
    return 100.0 * (used - reclaimable) / total if total > 0 else None
