"""The `vsrt` command: finds the subcommand, turns its errors into exit codes."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Collection, Sequence

from apps.cli.common import InputError, OperationFailed
from apps.cli.help_text import finish
from apps.cli.standard_output import OutputFailed, drop_output, have_streams
from apps.version import version

COMMANDS = {
    "topology": "make a fabric, or list the kinds of fabrics",
    "tree": "build the multicast tree of a group over a topology file",
    "simulate": "build the trees of many groups over a planned fabric and show what its links carry",
    "policy": "check a policy file, explain what it decides, and find the rules that changes and joins follow",
    "import": "make a policy file of the configuration of Faucet, FRR, Linux bridges or Open vSwitch",
    "emulate": "run an experiment in Mininet and measure loss, duplicates and rate at every receiver (as root)",
    "trace": "tell what captured packets hold, and make a scenario of them for `vsrt emulate`",
    "run": "run the controller under os-ken",
    "mount": "show what a running controller knows as files, and do what is written to some of them",
    "show": "show what a running controller knows",
    "watch": "follow what a running controller knows, as it changes",
    "changes": "record what of a running controller is configured otherwise than before",
    "actions": "who asked the controller for what, done or refused",
    "do": "have a running controller change a setting or do something once",
    "maintain": "drain, upgrade and watch the switches of a fabric in turn, so that streams go on",
    "template": "have settings of switches, columns of Open vSwitch's databases, as templates say, and undo that",
    "batch": "do what a workflow says, step by step, for all that its queries find, with a result for each",
    "profile": "note from when to when joins, repairs, polls and the like last, and report it, with plots",
    "latency": "say where the time of joins goes in the running controller and its switches, in segments that add up",
    "storm": "play switches whose hosts join in a storm against a controller, and say whether it keeps a goal",
    "check": "compare what switches hold with what they shall, and repair it if asked",
    "doctor": "say what of a running controller, its switches and its policy is to be looked at",
    "cluster": "look after the store that several controllers of a fabric share, and what switches know of them",
    "dashboard": "serve the operator's page and API of a running controller",
    "replay": "replay a recorded run and print the effects as JSON lines",
    "probe": "scripts that look at what a running controller does, and the points at which they can look",
    "perf": "rates, histograms and events of ports",
    "allocate": "allocate ports and pools by their metrics, and tell why",
    "classes": "what the control of service classes decides: limits, clusters, rates of queues, transfers of trees",
    "overcommit": "shares of flow tables that are too small for all groups, and what misses at one",
    "scaling": "how many monitors should share the switches, and how a pool would fare by learners and rules",
    "normalcy": "category, bounds and anomaly scores of time series",
    "diagnose": "name the members of a group that behave unlike their peers",
    "record": "record disks and networks by sysstat, a file a day, for `vsrt diagnose`",
    "completion": "print the script that completes `vsrt` in bash, zsh or fish",
}
"""Subcommands and what they do, each in a module ``apps.cli.<name>_command``; only those needed are imported."""

DONE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


class _PrintVersion(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> None:
        print(f"vsrt {version()}")
        parser.exit()


def build_parser(commands: Collection[str] = COMMANDS.keys()) -> argparse.ArgumentParser:
    """Return the parser of `vsrt`, with the arguments of the given commands; every one takes --json."""
    parser = argparse.ArgumentParser(
        prog="vsrt",
        description="Multicast trees for data-centre fabrics: topologies, trees, policies, emulation, controller.",
        epilog="`vsrt COMMAND --help` tells more.",
    )
    parser.add_argument("--version", action=_PrintVersion, nargs=0, help="print the version and exit")
    choices = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        command = choices.add_parser(name, help=summary)
        if name in commands:
            module = importlib.import_module(f"apps.cli.{name}_command")
            module.add_arguments(command)
            command.set_defaults(run=module.run, json=False)
    finish(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit status."""
    have_streams()
    try:
        status = _status_of(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
    except OutputFailed as error:
        if str(error):
            print(f"vsrt: {error}", file=sys.stderr)
        drop_output()
        return FAILED
    return status


def _status_of(arguments: Sequence[str]) -> int:
    asked = next((word for word in arguments if not word.startswith("-")), None)
    try:
        args = build_parser((asked,) if asked in COMMANDS else ()).parse_args(arguments)
        return int(args.run(args))
    except SystemExit as leaving:
        if isinstance(leaving.code, str):
            print(leaving.code, file=sys.stderr)
        return leaving.code if isinstance(leaving.code, int) else DONE if leaving.code is None else FAILED
    except InputError as error:
        print(f"vsrt: {error}", file=sys.stderr)
        return BAD_INPUT
    except OperationFailed as error:
        print(f"vsrt: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
