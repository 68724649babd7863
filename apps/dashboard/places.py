"""Which switch or port a path of the API means: by name, or by datapath id in any usual spelling."""

from __future__ import annotations

from apps.dashboard.answers import Problem
from apps.dashboard.board import Board
from controller.snapshot.reader import Document, DocumentCopy
from controller.wire.dpids import parse_dpid

MAX_PORT_NO = (1 << 32) - 1


def switch_dpid(board: Board, text: str) -> int:
    """Return the datapath id of a switch; Problem where the text is neither one nor the name of a switch."""
    dpid = board.made("switches", "names", _dpids).get(text)
    if dpid is not None:
        return dpid
    try:
        return parse_dpid(text)
    except ValueError as error:
        raise Problem(404, f"there is no switch {text!r}: {error}, and no switch has that name") from None


def known_dpid(board: Board, text: str) -> int:
    """Return the datapath id of a switch that is known, connected or not; Problem where there is none such."""
    dpid, switches = switch_dpid(board, text), board.section("switches")
    if switches.owner is not None and str(dpid) not in switches.documents:
        raise Problem(404, f"there is no switch {text}")
    return dpid


def port_number(board: Board, dpid: int, text: str) -> int:
    """Return the number of a port of a switch; Problem where the text is neither one nor the name of a port."""
    if text.isascii() and text.isdecimal():
        number = int(text) if len(text) <= 10 else 0
        if 1 <= number <= MAX_PORT_NO:
            return number
        raise Problem(404, f"there is no port {text}: numbers are 1 to {MAX_PORT_NO}")
    number = board.made("ports", "names", _port_numbers).get((dpid, text), 0)
    if not number:
        raise Problem(404, f"the switch has no port named {text!r}")
    return number


def speed_of(board: Board, dpid: int, port_no: int) -> float:
    """Return the speed of a port in bit/s, 0 where it is not known."""
    document = board.section("ports").documents.get(f"{dpid}:{port_no}")
    return 0.0 if document is None else float(document.fields.get("speed_bps") or 0.0)


def _dpids(switches: DocumentCopy) -> dict[str, int]:
    return {str(each.fields["name"]): int(each.fields["dpid"]) for each in _named(switches)}


def _port_numbers(ports: DocumentCopy) -> dict[tuple[int, str], int]:
    return {
        (int(each.fields["dpid"]), str(each.fields["name"])): int(each.fields["port_no"])
        for each in _named(ports)
        if "port_no" in each.fields
    }


def _named(section: DocumentCopy) -> list[Document]:
    return [each for each in section.documents.values() if each.fields.get("name") and "dpid" in each.fields]
