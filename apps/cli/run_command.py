"""`vsrt run`: the controller under os-ken, the same apps as under ryu-manager."""

from __future__ import annotations

import argparse
import importlib.util
import logging
import os
from pathlib import Path

from apps.cli.common import InputError, OperationFailed
from apps.end_signals import EndSignals
from apps.fabric_file import FabricFile
from apps.line_files import make_directory
from apps.openflow.collector import without_collections
from apps.openflow.listening import CannotListen, try_to_listen
from apps.registry import APPS
from apps.tls_files import SettingsInvalid, TlsFiles, server_context
from controller.config.faults import PolicyInvalid, describe
from controller.config.load import load_policy

MAX_TCP_PORT = 65535


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = (
        "SIGINT or SIGTERM, once or as often as you like, ends it within a few seconds: status 0, or 1 where an app "
        "did not end as it should. One that it was started to ignore, as SIGINT by a shell's `&`, stays ignored. "
        "A state directory or socket that another controller uses is left alone: status 1."
    )
    known = ", ".join(f"{spec.name} ({spec.says})" for spec in APPS.values())
    parser.add_argument("apps", nargs="+", choices=APPS, metavar="APP", help=f"one or more of: {known}")
    parser.add_argument("--config", type=Path, metavar="FILE", help="policy file (as VSRT_CONFIG under ryu-manager)")
    parser.add_argument(
        "--staged", type=Path, metavar="FILE", help="policy file that is judged by only (VSRT_STAGED)"
    )
    parser.add_argument("--port", type=int, default=6653, metavar="N", help="TCP port for OpenFlow (default: 6653)")
    tls = parser.add_argument_group("TLS to switches", "spoken on --port where a certificate and its key are given")
    tls.add_argument("--tls-certificate", type=Path, metavar="FILE", help="this controller's certificate chain (PEM)")
    tls.add_argument("--tls-key", type=Path, metavar="FILE", help="its private key (PEM), which others may not read")
    tls.add_argument("--tls-ca", type=Path, metavar="FILE", help="let in only switches with a certificate of this CA")
    tls.add_argument("--tls-crl", type=Path, metavar="FILE", help="not those that this CA has revoked (PEM lists)")
    tls.add_argument(
        "--tls-names", type=Path, metavar="FILE", help="only those named there, a line each: NAME, or NAME = DPID"
    )
    tls.add_argument("--plain-port", type=int, metavar="N", help="listen on this port too, without TLS")
    parser.add_argument("--listen", default="", metavar="ADDRESS", help="address to listen on (default: all)")
    parser.add_argument(
        "--state-dir", type=Path, metavar="DIR", help="directory of journal, audit log and socket (VSRT_STATE_DIR)"
    )
    parser.add_argument("--verbose", action="store_true", help="log debug messages")


def run(args: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM."""
    with EndSignals() as signals:
        return _serve(args, signals)


def _serve(args: argparse.Namespace, signals: EndSignals) -> int:
    config = args.config or os.environ.get("VSRT_CONFIG")
    if config:
        _check_policy(Path(config))
        os.environ["VSRT_CONFIG"] = str(config)
    staged = args.staged or os.environ.get("VSRT_STAGED")
    if staged:
        if Path(staged).exists():
            _check_policy(Path(staged))
        os.environ["VSRT_STAGED"] = str(staged)
    if args.state_dir is not None:
        try:
            make_directory(args.state_dir)
        except OSError as error:
            raise InputError(f"--state-dir: {args.state_dir}: {error.strerror}") from error
        os.environ["VSRT_STATE_DIR"] = str(args.state_dir)
    if importlib.util.find_spec("os_ken") is None:
        raise OperationFailed("os-ken is not installed")
    tls = _tls_files(args)
    tcp_port = args.port if tls is None else args.plain_port
    try:
        for port in _ports(args):
            try_to_listen(args.listen, port)
    except CannotListen as error:
        raise OperationFailed(str(error)) from error
    logging.basicConfig(
        level=logging.DEBUG if args.verbose else logging.INFO,
        format="%(asctime)s %(name)s %(levelname)s %(message)s",
    )
    with without_collections():
        from apps.openflow import framework

    framework.configure(args.listen, tcp_port, tls, args.port)
    return framework.run_apps([APPS[name].module_name for name in args.apps], signals)


def _ports(args: argparse.Namespace) -> list[int]:
    """Return the ports to listen on; InputError for what is none, and for one that is to be both."""
    given = [("--port", args.port)]
    if args.plain_port is not None:
        if args.tls_certificate is None:
            raise InputError("--plain-port: only beside TLS; --port says where switches connect without")
        given.append(("--plain-port", args.plain_port))
    for option, port in given:
        if not 1 <= port <= MAX_TCP_PORT:
            raise InputError(f"{option}: {port} is no TCP port")
    if args.plain_port == args.port:
        raise InputError(f"--plain-port: {args.port} is the port for TLS")
    return [port for _, port in given]


def _tls_files(args: argparse.Namespace) -> TlsFiles | None:
    """Return the files by which switches are spoken with, None for none; InputError where they are no good."""
    if args.tls_certificate is None and args.tls_key is None:
        for option, given in (
            ("--tls-ca", args.tls_ca),
            ("--tls-crl", args.tls_crl),
            ("--tls-names", args.tls_names),
        ):
            if given is not None:
                raise InputError(f"{option}: only with --tls-certificate and --tls-key")
        return None
    if args.tls_certificate is None or args.tls_key is None:
        raise InputError("--tls-certificate and --tls-key: only one of them is given")
    if args.tls_crl is not None and args.tls_ca is None:
        raise InputError("--tls-crl: only with --tls-ca, the authority whose lists these are")
    if args.tls_names is not None and args.tls_ca is None:
        raise InputError("--tls-names: only with --tls-ca, the authority that vouches for names")
    files = TlsFiles(args.tls_certificate, args.tls_key, args.tls_ca, args.tls_crl, args.tls_names)
    try:
        server_context(files)
    except SettingsInvalid as error:
        raise InputError(f"--tls-{error}") from error
    return files


def _check_policy(path: Path) -> None:
    try:
        load_policy(path.read_bytes(), str(path), FabricFile(path).read)
    except PolicyInvalid as error:
        raise InputError("\nvsrt: ".join(describe(fault, str(path)) for fault in error.errors)) from error
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
