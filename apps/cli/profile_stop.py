"""`vsrt profile stop`: ends the profile of the running controller, whose file is whole then."""

from __future__ import annotations

import argparse
import time
from typing import Any

from apps.cli.common import OperationFailed, emit_json
from apps.cli.perf_console import add_socket, ask_socket
from apps.cli.progress import ProgressBar
from apps.cli.snapshot_socket import user_name
from apps.end_signals import EndSignals

HELP = "end the profile of the running controller, and tell its file"
UNKNOWN = "this controller makes no profiles"

LOOK_S = 0.5
ENDS_WELL = ("it was stopped", "its time is over")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare where the controller is."""
    add_socket(parser)


def run(args: argparse.Namespace) -> int:
    """End it; 1 where the controller cannot write the file."""
    return print_ended(args, ask_socket(args, {"do": "profile-stop", "by": user_name()}, UNKNOWN))


def follow(args: argparse.Namespace, begun: dict[str, Any]) -> dict[str, Any]:
    """Show how a profile goes on until it has ended; a signal ends it."""
    bar = ProgressBar()
    try:
        with EndSignals() as signals:
            while True:
                shown = ask_socket(args, {"show": "profile"}, UNKNOWN)["profile"]
                if shown is None or (shown["name"], shown["begun_s"]) != (begun["name"], begun["begun_s"]):
                    raise OperationFailed(f"the profile {begun['name']} is gone: the controller was started anew")
                if shown["state"] == "ended":
                    return dict(shown)
                if signals.asked and shown["state"] == "running":
                    return dict(ask_socket(args, {"do": "profile-stop", "by": user_name()}, UNKNOWN))
                for_s = shown["for_s"]
                past_s = min(for_s, max(0.0, time.time() - shown["begun_s"]))
                bar.draw(f"profile {shown['name']}, {shown['spans']:,} spans, seconds", int(past_s), int(for_s))
                signals.wait(LOOK_S)
    finally:
        bar.clear()


def print_ended(args: argparse.Namespace, ended: dict[str, Any]) -> int:
    """Tell what a profile is that has ended; OperationFailed where it is not whole."""
    if ended["fault"]:
        raise OperationFailed(ended["fault"])
    if args.json:
        emit_json(ended)
    else:
        spans = f"{ended['spans']:,} span{'' if ended['spans'] == 1 else 's'}"
        missed = f", {ended['missed']:,} found no room" if ended["missed"] else ""
        print(f"{ended['path']}: {spans}{missed}; {ended['ended']}")
    return 0 if ended["ended"] in ENDS_WELL else 1
