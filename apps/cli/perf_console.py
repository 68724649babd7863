"""What the commands of the monitor's console share: the question over the controller's socket, and its tables."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from apps.cli.called import read_dpid
from apps.cli.common import InputError, OperationFailed
from apps.dashboard.lists import ordered
from apps.status_client import query
from controller.config.terms import is_switch_name
from controller.snapshot.reader import Document

TIMEOUT_S = 30.0
NODE_TYPES = ("all", "hosts", "tor", "aggregation", "core", "switch")
SOCKETS = (Path("vsrt-state/vsrt.sock"), Path("/run/vsrt/vsrt.sock"), Path("/var/lib/vsrt/vsrt.sock"))
"""Where a controller's socket is looked for that nobody named: here, then where services keep theirs."""

INSTEAD = {
    "perf-report": "`vsrt show ports --url` has the rates of ports",
    "perf-top": "`vsrt show ports --sort tx_utilisation_pct --reverse --url` has the busiest ports",
    "perf-events": "`vsrt show events --url` has the events of ports too",
}
"""What to use from elsewhere in place of a question that only the socket answers."""

MOST_LINES = 100_000
"""Lines that the monitor gives at most."""

_PORT = re.compile(r"([0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){7}|[^:]+)(?::([0-9]{1,10}))?\Z")
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def add_socket(parser: argparse.ArgumentParser) -> None:
    """Declare where the controller listens."""
    parser.add_argument("--socket", type=Path, metavar="PATH", help="the controller's Unix socket (VSRT_SOCKET)")


def add_console(parser: argparse.ArgumentParser) -> None:
    """Declare where the controller is asked by a command of whose answers the dashboard's API has none."""
    add_socket(parser)
    add_api(parser)


def add_api(parser: argparse.ArgumentParser) -> None:
    """Declare where a dashboard's API is reached."""
    parser.add_argument("--url", metavar="URL", help="http(s)://HOST:PORT of the dashboard, in place of the socket")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="file with the token for the dashboard")
    parser.add_argument("--ca", type=Path, metavar="FILE", help="certificates (PEM) that may sign the dashboard's")


def add_list(parser: argparse.ArgumentParser, what: str, limit: int) -> None:
    """Declare how many of a list are shown, and in which order."""
    parser.add_argument("--sort", metavar="FIELD", help=f"{what} in the order of a field that --json prints")
    parser.add_argument("--reverse", action="store_true", help="sort downwards")
    parser.add_argument("--limit", type=int, default=limit, metavar="N", help=f"at most so many (default: {limit})")


def asked_count(args: argparse.Namespace) -> int:
    """Return how many to ask the controller for: all that there are where they are sorted and cut here."""
    if args.limit < 1:
        raise InputError(f"--limit: {args.limit} is not at least 1")
    if args.reverse and args.sort is None:
        raise InputError("--reverse: only with --sort")
    return int(args.limit) if args.sort is None else max(MOST_LINES, args.limit)


def arranged(args: argparse.Namespace, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what is to be shown of a list; InputError where nothing has the field to sort by."""
    if args.sort is None:
        return list(rows)
    if rows and not any(args.sort in row for row in rows):
        known = ", ".join(sorted({name for row in rows for name in row}))
        raise InputError(f"--sort: nothing has the field {args.sort!r}; there are {known}")
    documents = ordered([Document("", row) for row in rows], f"-{args.sort}" if args.reverse else args.sort)
    return [document.fields for document in documents[: args.limit]]


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Declare which ports are meant."""
    parser.add_argument(
        "where", nargs="?", metavar="NODE[:PORT]", help="a switch (name or datapath id), or one of its ports"
    )
    parser.add_argument(
        "--type", choices=NODE_TYPES, default="all", help="ports that lead to hosts, or a class of switches (all)"
    )


def selection(args: argparse.Namespace) -> dict[str, Any]:
    """Return which ports are meant, as the controller is asked."""
    chosen: dict[str, Any] = {"type": args.type}
    if args.where is not None:
        match = _PORT.match(args.where)
        if match is None:
            raise InputError(f"{args.where!r} is neither a switch nor SWITCH:PORT")
        chosen["node"] = node_of(match[1], "NODE")
        if match[2] is not None:
            chosen["port"] = int(match[2])
    return chosen


def node_of(text: str, field: str) -> int | str:
    """Return a switch as the monitor is asked about it: its datapath id, or its name."""
    return text if is_switch_name(text) else read_dpid(text, field)


def socket_path(args: argparse.Namespace) -> Path:
    """Return the path of the controller's socket: as named, else the first of `SOCKETS` that is there."""
    if args.socket is not None:
        return Path(args.socket)
    if given := os.environ.get("VSRT_SOCKET"):
        return Path(given)
    if directory := os.environ.get("VSRT_STATE_DIR"):
        return Path(directory) / "vsrt.sock"
    return next((path for path in SOCKETS if path.exists()), SOCKETS[0])


def no_answer(path: Path, error: OSError | ValueError) -> str:
    """Return a sentence that says that nobody answers at a socket, and where else one was looked for."""
    told = getattr(error, "strerror", None) or error
    elsewhere = ""
    if path == SOCKETS[0] and isinstance(error, FileNotFoundError):
        others = " or ".join(map(str, SOCKETS[1:]))
        elsewhere = f"; there is none at {others} either: name it with --socket or VSRT_SOCKET"
    return f"{path}: no controller answers: {told}{elsewhere}"


def answer_of(path: Path, request: Mapping[str, Any]) -> Any:
    """Return what the controller at `path` answers; OperationFailed where nobody does."""
    try:
        return query(path, request, TIMEOUT_S)
    except (OSError, ValueError) as error:
        raise OperationFailed(no_answer(path, error)) from error


def ask(args: argparse.Namespace, action: str, question: Mapping[str, Any], app: str = "monitor") -> Any:
    """Ask `app` of the running controller one question.

    OperationFailed where nobody answers, and where the controller refuses for what it does or has at the moment;
    InputError where it refuses for a field of what is asked, and with `is_for_words` whenever it refuses.
    """
    if args.url is not None:
        instead = INSTEAD.get(action, "ask where the controller runs, by its socket")
        raise InputError(f"--url: the dashboard's API does not answer {action}; {instead}")
    for option in ("token_file", "ca"):
        if getattr(args, option) is not None:
            raise InputError(f"--{option.replace('_', '-')}: only with --url")
    return ask_socket(args, {"do": action, **question}, f"no {app} runs in this controller", is_for_words=True)


def ask_socket(
    args: argparse.Namespace, question: Mapping[str, Any], unknown: str, *, is_for_words: bool = False
) -> Any:
    """Return the answer to a question; `unknown` says what it means that the controller does not know it.

    OperationFailed where nobody answers, and where the controller refuses for what it does or has at the moment;
    InputError where it refuses for what is asked.
    """
    path = socket_path(args)
    answer = answer_of(path, question)
    if isinstance(answer, dict) and isinstance(answer.get("error"), str):
        if answer.get("refused"):
            raise (InputError if is_for_words or answer.get("field") else OperationFailed)(answer["error"])
        if answer["error"].startswith("ask with"):
            raise OperationFailed(f"{path}: {unknown}")
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


def port_rows(ports: Iterable[Mapping[str, Any]]) -> Iterable[tuple[str, ...]]:
    """Return what tables tell of ports, under `PORT_TITLES`."""
    for port in ports:
        yield (
            f"{port['switch']}:{port['port_no']}",
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
