"""`vsrt probe ps`: the scripts that look at the running controller."""

from __future__ import annotations

import argparse
import textwrap
import time

from apps.cli.common import emit_json, emit_table
from apps.cli.perf_console import add_socket
from apps.cli.probe_console import ask_controller
from controller.durations import format_duration

HELP = "list the scripts that look at the running controller"


WIDTH = 80
"""Characters of a script that are shown."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare where the controller is."""
    add_socket(parser)


def _first_words(script: str) -> str:
    """Return what a script says of itself in its first line, or how it begins."""
    first = script.strip().partition("\n")[0]
    words = first.removeprefix("//").split() if first.startswith("//") else script.split()
    return textwrap.shorten(" ".join(words), WIDTH, placeholder=" ...")


def run(args: argparse.Namespace) -> int:
    """Print them."""
    found = ask_controller(args, {"show": "probes"})
    if args.json:
        emit_json(found)
        return 0
    now_s = time.time()
    rows = [
        (
            probe["id"],
            probe["by"] or "-",
            str(probe["points"]),
            format_duration(max(0.0, now_s - probe["begun_s"])),
            format_duration(max(0.0, probe["begun_s"] + probe["for_s"] - now_s)),
            _first_words(probe["script"]),
        )
        for probe in found["probes"]
    ]
    if rows:
        emit_table(("id", "by", "points", "runs for", "to go", "script"), rows)
    else:
        print("no script runs")
    return 0
