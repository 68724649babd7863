"""What the commands of the monitor's console share: the question over the controller's socket, and its tables."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from apps.cli.common import InputError, OperationFailed
from apps.status_client import query

TIMEOUT_S = 30.0
NODE_TYPES = ("all", "hosts", "tor", "aggregation", "core", "switch")
_PORT = re.compile(r"(0x[0-9a-fA-F]{1,16}|[0-9]{1,20})(?::([0-9]{1,10}))?\Z")
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def add_socket(parser: argparse.ArgumentParser) -> None:
    """Declare where the controller listens."""
    parser.add_argument("--socket", type=Path, metavar="PATH", help="the controller's Unix socket (VSRT_SOCKET)")


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Declare which ports are meant."""
    parser.add_argument("where", nargs="?", metavar="NODE[:PORT]", help="a switch (datapath id), or one of its ports")
    parser.add_argument(
        "--type", choices=NODE_TYPES, default="all", help="ports that lead to hosts, or a class of switches (all)"
    )


def selection(args: argparse.Namespace) -> dict[str, Any]:
    """Return which ports are meant, as the controller is asked."""
    chosen: dict[str, Any] = {"type": args.type}
    if args.where is not None:
        match = _PORT.match(args.where)
        if match is None:
            raise InputError(f"{args.where!r} is neither a datapath id nor DPID:PORT")
        chosen["node"] = int(match[1], 0)
        if match[2] is not None:
            chosen["port"] = int(match[2])
    return chosen


def socket_path(args: argparse.Namespace) -> Path:
    """Return the path of the controller's socket."""
    if args.socket is not None:
        return Path(args.socket)
    given = os.environ.get("VSRT_SOCKET")
    return Path(given) if given else Path(os.environ.get("VSRT_STATE_DIR") or "vsrt-state") / "vsrt.sock"


def answer_of(path: Path, request: Mapping[str, Any]) -> Any:
    """Return what the controller at `path` answers; OperationFailed where nobody does."""
    try:
        return query(path, request, TIMEOUT_S)
    except (OSError, ValueError) as error:
        told = getattr(error, "strerror", None) or error
        raise OperationFailed(f"{path}: no controller answers: {told}") from error


def ask(args: argparse.Namespace, action: str, question: Mapping[str, Any], app: str = "monitor") -> Any:
    """Ask `app` of the running controller one question.

    OperationFailed where nobody answers; InputError where the controller refuses the question.
    """
    path = socket_path(args)
    answer = answer_of(path, {"do": action, **question})
    if isinstance(answer, dict) and isinstance(answer.get("error"), str):
        if answer.get("refused"):
            raise InputError(answer["error"])
        if answer["error"].startswith("ask with"):
            raise OperationFailed(f"{path}: no {app} runs in this controller")
        raise OperationFailed(f"{path}: {answer['error']}")
    return answer


def scaled(value: float | None, unit: str = "") -> str:
    """Return a number with a prefix, such as ``12.3 M``; ``-`` for None."""
    if value is None:
        return "-"
    for factor, prefix in _PREFIXES:
        if abs(value) >= factor:
            return f"{value / factor:.4g} {prefix}{unit}"
    return f"{value:.4g} {unit}".rstrip()


def percent(value: float | None) -> str:
    """Return a percentage; ``-`` for None."""
    return "-" if value is None else f"{value:.2f}"


def clock(at_s: float | None) -> str:
    """Return a time of day in UTC; ``-`` for None."""
    return "-" if at_s is None else datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%S")


def port_rows(ports: Iterable[Mapping[str, Any]]) -> Iterable[tuple[str, ...]]:
    """Return what tables tell of ports, under `PORT_TITLES`."""
    for port in ports:
        yield (
            f"{port['dpid']}:{port['port_no']}",
            port["name"] or "-",
            port["class"],
            "up" if port["up"] else "down",
            scaled(port["rx_bps"]),
            scaled(port["tx_bps"]),
            percent(port["rx_utilisation_pct"]),
            percent(port["tx_utilisation_pct"]),
            scaled(port["errors_per_s"]),
            ", ".join(port["raised"]) or "-",
        )


PORT_TITLES = ("port", "name", "class", "state", "rx bit/s", "tx bit/s", "rx %", "tx %", "errors/s", "raised")
