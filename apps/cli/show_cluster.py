"""Rows of `vsrt show cluster`: controllers, what is wrong, and monitors that share the switches."""

from __future__ import annotations

from collections.abc import Iterator

from apps.cli.called import SnapshotNames
from apps.cli.perf_console import percent
from apps.cli.show_cells import Fields, Row, text

MEMBER_TITLES = ("MEMBER", "ROLE", "EPOCH", "ADDRESS", "STORE", "SWITCHES", "REMARKS")


def cluster_rows(member: Fields, called: SnapshotNames) -> Iterator[Row]:
    """Yield the row of a controller or a monitor; what the controller that answers knows to be wrong follows it."""
    if "monitor" in member:
        yield _monitor(member, called)
        return
    role = "leads" if member.get("leads") else "follows" if member.get("is_there") else "gone"
    switches = member.get("switches")
    own = member.get("answers")
    known = f"{member.get('switches_led')} of {switches}" if own and switches is not None else switches
    name = f"{member.get('member')} (this one)" if own else text(member.get("member"))
    cells = map(text, (member.get("epoch"), member.get("peer"), member.get("store"), known))
    yield name, role, *cells, ", ".join(_remarks(member, called)) or "-"
    for problem in member.get("problems") or ():
        yield *("",) * (len(MEMBER_TITLES) - 1), problem


def _remarks(member: Fields, called: SnapshotNames) -> Iterator[str]:
    if (since_s := member.get("leads_since_s")) is not None:
        yield f"{'at least ' if member.get('leads_at_least') else ''}since {called.clock(since_s)}"
    if (gone_s := member.get("gone_s")) is not None:
        yield f"since {called.clock(gone_s)}"
    if (took_s := member.get("take_over_s")) is not None:
        yield f"took over in {took_s:.3f} s"
    if (silent_s := member.get("store_silent_s")) is not None:
        yield f"store silent since {called.clock(silent_s)}"
    if lag_s := member.get("log_lag_s"):
        yield f"log behind for {lag_s:.1f} s"


def _monitor(monitor: Fields, called: SnapshotNames) -> Row:
    remarks = []
    if not monitor.get("is_there"):
        remarks.append(f"since {called.clock(monitor.get('gone_s'))}")
    elif (load_pct := monitor.get("load_pct")) is not None:
        remarks.append(f"{percent(load_pct)} of all polls")
    if leaving := monitor.get("leaving"):
        remarks.append(f"{leaving} on their way to others")
    if unowned := monitor.get("unowned"):
        remarks.append("1 switch has no monitor" if unowned == 1 else f"{unowned} switches have no monitor")
    roles = ["monitor"] if monitor.get("is_there") else ["monitor", "gone"]
    roles += [word for word in ("divides", "drained") if monitor.get(word)]
    switches = monitor.get("switches")
    polled = None if switches is None else f"{switches} of {monitor.get('connected')}"
    cells = map(text, (None, monitor.get("metrics") or None, None, polled))
    return text(monitor.get("monitor")), ", ".join(roles), *cells, ", ".join(remarks) or "-"
