"""`vsrt storm`: plays switches whose hosts join in a storm against a controller, and says whether it keeps a goal."""

from __future__ import annotations

import argparse
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from apps.cli.common import InputError, OperationFailed, emit_json, emit_table
from apps.cli.perf_console import add_socket, socket_path
from apps.cli.progress import ProgressBar
from apps.cli.storm_refusals import JoinsRefused, refusals
from apps.cli.storm_teller import StormTeller
from apps.cli.whole_files import must_be_writable, write_whole_text
from apps.storm.player import LEAVES_AGAIN_S, StormFailed, StormPlayer
from controller.config.terms import parse_host_port
from controller.storm.attempts import RequestState
from controller.storm.outcome import StormOutcome, Waits, outcome_of, room_needed, waits_of
from controller.storm.plan import PlannedJoin, StormOrder, StormShape, peak_per_s, plan_storm

OPENFLOW_PORT = 6653
MOST_JOINS, MOST_SWITCHES, MOST_PORTS, MOST_GROUPS = 1_000_000, 1024, 1024, 65_000
SETTLE_S = 300.0
LATE_SHARE = 0.5
"""Of the goal: who plays the storm and is so late itself is told of."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = (
        "The switches are simulated and speak OpenFlow 1.3; the controller is one that runs already, and has no "
        "switches of its own: it remembers those of the storm as gone. Status 0: the goal is kept, 1: it is missed, "
        "or somebody was not served."
    )
    parser.add_argument("--joins", type=_whole(1, MOST_JOINS), required=True, metavar="X", help="joins of the storm")
    parser.add_argument(
        "--sigma-s",
        type=_number(0.01, 1e6),
        default=10.0,
        metavar="S",
        help="standard deviation of their times; the storm lasts six, its rate peaks at 0.4 X/S (%(default)g s)",
    )
    parser.add_argument(
        "--shape",
        choices=[shape.value for shape in StormShape],
        default=StormShape.NORMAL.value,
        help="how their times are distributed (%(default)s)",
    )
    parser.add_argument(
        "--switches", type=_whole(1, MOST_SWITCHES), default=10, metavar="N", help="with hosts (%(default)s)"
    )
    parser.add_argument(
        "--spines", type=_whole(0, 256), default=2, metavar="N", help="cabled to all of them, beside (%(default)s)"
    )
    parser.add_argument(
        "--ports", type=_whole(1, MOST_PORTS), default=24, metavar="N", help="hosts of each switch (%(default)s)"
    )
    parser.add_argument(
        "--groups", type=_whole(1, MOST_GROUPS), default=1000, metavar="N", help="that they join (%(default)s)"
    )
    parser.add_argument("--leave", action="store_true", help="then they leave, in a storm of the same shape")
    parser.add_argument(
        "--off", type=_percent, default=0.0, metavar="PCT", help="ports that have to come up first, such as 20%%"
    )
    parser.add_argument(
        "--attempts", type=_whole(1, 1000), default=3, metavar="N", help="until a host gives up (%(default)s)"
    )
    parser.add_argument(
        "--again-s", type=_number(0.05, 3600), default=1.0, metavar="S", help="between attempts (%(default)g s)"
    )
    parser.add_argument(
        "--slo-ms",
        type=_number(0.1, 1e6),
        default=50.0,
        metavar="MS",
        help="the goal: 99 %% of those whose port is up are served within it, and all are served (%(default)g ms)",
    )
    parser.add_argument(
        "--step",
        type=_whole(1, MOST_JOINS),
        metavar="N",
        help="play further storms, each of so many joins more, until the goal is missed",
    )
    parser.add_argument(
        "--seed", type=_whole(0, 1 << 31), default=1, metavar="N", help="of what is drawn (%(default)s)"
    )
    parser.add_argument(
        "--port", type=_whole(1, 65535), default=OPENFLOW_PORT, help="of a controller of this machine (%(default)s)"
    )
    parser.add_argument("--remote", metavar="HOST[:PORT]", help="play against a controller elsewhere")
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="write a line of JSON for each host: attempts and times"
    )
    add_socket(parser)


class _Played(NamedTuple):
    order: StormOrder
    outcome: StormOutcome
    leaves: Waits | None
    joins: Sequence[tuple[PlannedJoin, RequestState]]
    keeps: bool
    refused: Sequence[JoinsRefused] = ()
    unknown: str = ""
    """Why it is not known whether the policy refused those who were not served."""

    def document(self) -> dict[str, Any]:
        peak = peak_per_s(self.order)
        outcome, mean_ms = self.outcome, self.outcome.up.mean_ms
        return {
            "joins": self.order.joins,
            "peak_per_s": round(peak, 3) if isfinite(peak) else None,
            "waits": outcome.up.document(),
            "after_port_up": outcome.off.document() if self.order.off_pct else None,
            "leaves": None if self.leaves is None else self.leaves.document(),
            "attempts": {str(attempts): count for attempts, count in outcome.attempts.items()},
            "under_way_at_most": outcome.busiest,
            "room_needed": round(room_needed(mean_ms / 1000, peak), 3) if mean_ms and isfinite(peak) else None,
            "played_late_p99_ms": outcome.late_p99_ms,
            "refused": [each._asdict() for each in self.refused],
            "keeps_goal": self.keeps,
        }


def run(args: argparse.Namespace) -> int:
    """Play the storm, or storms."""
    hosts = args.switches * args.ports
    if args.joins > hosts * args.groups:
        raise InputError(f"--joins: {hosts} hosts and {args.groups} groups have {hosts * args.groups} joins at most")
    if args.off and args.step is not None:
        raise InputError("--off: not with --step")
    if args.output is not None:
        must_be_writable(args.output)
    bar, played, failed = ProgressBar(), list[_Played](), ""
    try:
        with _teller(args) as teller, _player(args, bar, teller) as player:
            order = StormOrder(args.joins, args.sigma_s, StormShape(args.shape), args.off)
            while True:
                teller.begins(order.joins)
                played.append(_play(player, order, args, hosts))
                teller.played([each.document() for each in played])
                if args.step is None or not played[-1].keeps or order.joins + args.step > hosts * args.groups:
                    break
                player.leave_all()
                order = order._replace(joins=order.joins + args.step)
    except StormFailed as error:
        failed = str(error)
    finally:
        bar.clear()
    if played:
        _tell(args, played)
        if args.output is not None:
            _write(args.output, played[-1])
    if failed:
        raise OperationFailed(failed)
    return 0 if played[0].keeps else 1


def _teller(args: argparse.Namespace) -> StormTeller:
    host, port = _address(args)
    about = {"target": f"{host}:{port}", "shape": args.shape, "switches": args.switches + args.spines}
    is_elsewhere = args.remote is not None and args.socket is None
    return StormTeller(
        None if is_elsewhere else socket_path(args), {**about, "sigma_s": args.sigma_s, "slo_ms": args.slo_ms}
    )


@contextmanager
def _player(args: argparse.Namespace, bar: ProgressBar, teller: StormTeller) -> Iterator[StormPlayer]:
    from apps.simulated_fabric.fabric import SimulatedFabric
    from apps.simulated_fabric.hosts import SimulatedHosts
    from apps.storm.switches import storm_switches

    fabric = SimulatedFabric(storm_switches(args.switches, args.spines, args.ports), _resolved(*_address(args)))

    def progress(stage: str, done: int, total: int) -> None:
        bar.draw(stage, done, total)
        teller.goes_on(stage, done, total)

    try:
        player = StormPlayer(fabric, SimulatedHosts(fabric), args.groups, progress)
        if args.off:
            order = StormOrder(args.joins, args.sigma_s, StormShape(args.shape), args.off)
            player.turn_off(plan_storm(order, args.switches * args.ports, args.groups, args.seed))
        player.settle(SETTLE_S)
        yield player
        player.leave_all()
    finally:
        fabric.close()


def _address(args: argparse.Namespace) -> tuple[str, int]:
    if args.remote is None:
        return "127.0.0.1", args.port
    with suppress(ValueError):
        return str(ip_address(args.remote.removeprefix("[").removesuffix("]"))), args.port
    text = args.remote if ":" in args.remote else f"{args.remote}:{args.port}"
    try:
        return parse_host_port(text)
    except ValueError as error:
        raise InputError(f"--remote: {error}") from None


def _resolved(host: str, port: int) -> tuple[str, int]:
    """Return an address of a host, which is asked for once and not by each switch."""
    try:
        address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4]
    except OSError as error:
        raise OperationFailed(f"--remote: {host}: {error.strerror or error}") from None
    return str(address[0]), port


def _play(player: StormPlayer, order: StormOrder, args: argparse.Namespace, hosts: int) -> _Played:
    planned = plan_storm(order, hosts, args.groups, args.seed)
    states = player.join(planned, args.attempts, args.again_s)
    outcome = outcome_of(states)
    leaves = None
    if args.leave:
        times_s = [join.at_s for join in plan_storm(order._replace(off_pct=0), hosts, args.groups, args.seed + 1)]
        leaves = waits_of(player.leave(times_s, args.attempts, max(args.again_s, LEAVES_AGAIN_S)))
    joins = list(zip(planned, states, strict=True))
    played = _Played(order, outcome, leaves, joins, outcome.keeps(args.slo_ms))
    return _with_refusals(args, player, played) if outcome.unserved else played


def _with_refusals(args: argparse.Namespace, player: StormPlayer, played: _Played) -> _Played:
    """Add what the controller says of those who were not served, while they still ask."""
    unserved = [player.asked(join) for join, state in played.joins if state.done_s is None]
    if args.remote is not None and args.socket is None:
        return played._replace(unknown="it runs elsewhere; `vsrt show refusals` there tells it")
    path = socket_path(args)
    try:
        refused = refusals(path, unserved)
    except OperationFailed as error:
        return played._replace(unknown=f"{error} (--socket names its socket)")
    limits = "limits of a port or host may have, which `vsrt show status` counts"
    unknown = "" if refused else f"the controller at {path} shows none of them as refused; {limits}"
    return played._replace(refused=refused, unknown=unknown)


def _write(path: Path, played: _Played) -> None:
    import json

    from apps.storm.player import group_of
    from controller.wire.addresses import format_ip

    lines = (
        json.dumps(
            {
                "host": join.host,
                "group": format_ip(group_of(join.group)),
                "due_s": round(state.at_s, 6),
                "port_was_up": not state.is_off,
                "attempts": state.attempts,
                "took_ms": None if state.took_s is None else round(1000 * state.took_s, 3),
            }
        )
        for join, state in played.joins
    )
    write_whole_text(path, "".join(f"{line}\n" for line in lines))


def _tell(args: argparse.Namespace, played: Sequence[_Played]) -> None:
    kept = [each for each in played if each.keeps]
    largest = kept[-1].order.joins if kept else None
    if args.json:
        storms = [each.document() for each in played]
        emit_json({"slo_ms": args.slo_ms, "storms": storms, "largest": largest, "keeps_goal": played[0].keeps})
        return
    rows = []
    for each in played:
        rows.append(_row(f"{each.order.joins:,} joins", peak_per_s(each.order), each.outcome.up))
        if each.order.off_pct:
            rows.append(_row("after their port came up", None, each.outcome.off))
        if each.leaves is not None:
            rows.append(_row("leaves", None, each.leaves))
    emit_table(("STORM", "PEAK/S", "MEAN MS", "P50 MS", "P95 MS", "P99 MS", "MAX MS", "NOT SERVED"), rows)
    last = played[-1].document()
    if last["room_needed"] is not None:
        print(f"room needed at the peak: {last['room_needed']:g} joins under way, by mean wait and peak rate")
    if last["played_late_p99_ms"] > LATE_SHARE * args.slo_ms:
        late = f"{last['played_late_p99_ms']:g} ms"
        print(f"vsrt: this machine was {late} late itself (p99): the waits are its own in part", file=sys.stderr)
    for refusal in played[-1].refused:
        print(refusal.text)
    if played[-1].unknown:
        told = f"{played[-1].outcome.unserved:,} joins were not served"
        print(f"vsrt: {told}. Whether the policy refused them: {played[-1].unknown}.", file=sys.stderr)
    if args.step is not None:
        print("no storm keeps the goal" if largest is None else f"the largest storm that keeps it: {largest:,} joins")
    else:
        print(f"the goal of {args.slo_ms:g} ms is {'kept' if played[0].keeps else 'missed'}")


def _row(what: str, peak: float | None, waits: Waits) -> tuple[object, ...]:
    times = (waits.mean_ms, waits.p50_ms, waits.p95_ms, waits.p99_ms, waits.max_ms)
    rate = "-" if peak is None or not isfinite(peak) else f"{peak:.1f}"
    return what, rate, *("-" if value is None else f"{value:.1f}" for value in times), waits.unserved


def _whole(lower: int, upper: int) -> Any:
    def read(text: str) -> int:
        if not text.isdecimal() or not lower <= int(text) <= upper:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {lower} to {upper}")
        return int(text)

    return read


def _number(lower: float, upper: float) -> Any:
    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not lower <= value <= upper:
            raise argparse.ArgumentTypeError(f"{text!r} is no number from {lower:.15g} to {upper:.15g}")
        return value

    return read


def _percent(text: str) -> float:
    return float(_number(0, 100)(text.removesuffix("%")))
