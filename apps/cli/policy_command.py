"""`vsrt policy`: check and explain policy files, and find the rules that changes and joins follow."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from types import ModuleType

from apps.cli import policy_compare, policy_discover, policy_propose
from apps.cli.common import InputError, emit_json
from apps.fabric_file import FabricFile
from controller.admission import Admission, Host, Role, explain_router
from controller.admission.marks import Marks
from controller.config import PolicyError, PolicyInvalid, load_policy
from controller.config.faults import as_document, describe, quoted
from controller.config.json_schema import schema_text
from controller.config.marking import marking_of
from controller.config.policy import Policy
from controller.config.terms import (
    MAX_PORT_NO,
    Prefix,
    SwitchPort,
    looks_like_mac,
    parse_host_mac,
    parse_host_prefix,
    parse_prefix,
)
from controller.config.vlans import MAX_VLAN_ID, UNTAGGED
from controller.kernel.domains import OWN_DOMAIN
from controller.wire.addresses import is_multicast_ip
from controller.wire.dpids import parse_dpid

DISCOVERIES: dict[str, ModuleType] = {
    "compare": policy_compare,
    "discover": policy_discover,
    "propose": policy_propose,
}
"""Subcommands that are modules of their own; these read what they need when they run."""

_SWITCH_PORT = re.compile(r"(0x[0-9a-fA-F]{1,16}|[0-9a-fA-F]{16}|[0-9]{1,20}):([0-9]{1,10})\Z")
_NO_MAC = bytes(6)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare `check`, `explain` and `schema`, and what is found out, with their arguments."""
    names = "|".join(("check", "explain", "schema", *DISCOVERIES))
    commands = parser.add_subparsers(dest="policy_command", required=True, metavar=names)
    check = commands.add_parser("check", help="list every fault of a policy file, with its line")
    explain = commands.add_parser("explain", help="tell which rule decides about a host, a group and a role")
    commands.add_parser("schema", help="print the JSON Schema of policy files, by which editors complete and check")
    for name, module in DISCOVERIES.items():
        module.add_arguments(commands.add_parser(name, help=module.HELP))
    for command in (check, explain):
        command.add_argument("file", type=Path, metavar="FILE", help="policy file (YAML)")
        command.add_argument(
            "--json", action="store_true", default=argparse.SUPPRESS, help="print one JSON document and nothing else"
        )
    explain.add_argument(
        "--host",
        action="append",
        required=True,
        metavar="H",
        help="IP address, MAC address or dpid:port of the host, or several of these with commas between them",
    )
    explain.add_argument("--group", metavar="G", help="IPv4 or IPv6 group; a router may be asked about without one")
    explain.add_argument("--role", required=True, choices=[str(role) for role in Role], help="what the host asks for")
    explain.add_argument("--vlan", metavar="V", help="VLAN in which it asks, by id or name (none: untagged)")
    explain.add_argument("--source", metavar="S", help="source that a receiver asks for (none: any source)")


def run(args: argparse.Namespace) -> int:
    """Answer `check` with 0 (good) or 2 (faults), `explain` with 0 whatever the decision is."""
    if args.policy_command in DISCOVERIES:
        return int(DISCOVERIES[args.policy_command].run(args))
    if args.policy_command == "schema":
        sys.stdout.write(schema_text())
        return 0
    as_json = getattr(args, "json", False)
    if args.policy_command == "check":
        return _check(args.file, as_json)
    return _explain(args, as_json)


def _check(path: Path, as_json: bool) -> int:
    errors: tuple[PolicyError, ...] = ()
    warnings: tuple[PolicyError, ...] = ()
    try:
        policy = load_policy(_read(path), str(path), FabricFile(path).read)
    except InputError as unread:
        if as_json:
            emit_json({"ok": False, "errors": [{"line": 0, "field": "", "message": str(unread)}], "warnings": []})
        raise
    except PolicyInvalid as fault:
        errors = fault.errors
    else:
        warnings = policy.warnings
    for error in errors:
        print(describe(error, str(path)), file=sys.stderr)
    for warning in warnings:
        print(describe(warning._replace(message=f"warning: {warning.message}"), str(path)), file=sys.stderr)
    if as_json:
        emit_json(
            {
                "ok": not errors,
                "errors": [as_document(error) for error in errors],
                "warnings": [as_document(warning) for warning in warnings],
            }
        )
    elif not errors:
        print(f"{path}: good: {len(policy.rules)} rules, {len(policy.tenants)} tenants")
    return 2 if errors else 0


def _explain(args: argparse.Namespace, as_json: bool) -> int:
    data = _read(args.file)
    host = parse_host(args.host)
    role = Role(args.role)
    if args.group is None and role is not Role.ROUTER:
        raise InputError(f"--group: missing; only a router may be asked about without one, not a {role}")
    if args.source is not None and role is Role.ROUTER:
        raise InputError("--source: a rule about routers has no sources")
    if args.vlan is not None and role is Role.ROUTER:
        raise InputError("--vlan: a rule about routers names no VLAN")
    group = None if args.group is None else _group(args.group)
    source = None if args.source is None or group is None else _source(args.source, group)
    try:
        policy = load_policy(data, str(args.file), FabricFile(args.file).read)
    except PolicyInvalid as fault:
        raise InputError(str(fault)) from None
    if role is Role.ROUTER:
        decision = explain_router(policy, host, group)
    else:
        assert group is not None
        decision = Admission(policy).decide(host, group, role, source, _vlan(args.vlan, policy))
    tenants, sent = _tenants_of(policy, host), None
    marks = Marks(marking_of(policy))
    if role is Role.SENDER and marks.are_used:
        assert group is not None
        mark = marks.of(host, group)
        sent = {"service_class": mark.service_class, "dscp": mark.dscp}
    if as_json:
        told = {"admit": decision.admit, "rule": decision.rule, "reason": decision.reason, "tenants": tenants}
        emit_json(told if sent is None else {**told, **sent})
        return 0
    print(f"{'admitted' if decision.admit else 'refused'} by {decision.rule}: {decision.reason}")
    print(f"tenants of the host: {', '.join(tenants) or 'none'}")
    if sent is not None:
        dscp = "its port is trusted, and packets keep theirs" if sent["dscp"] is None else sent["dscp"]
        print(f"service class: {sent['service_class'] or 'none'}; DSCP: {dscp}")
    return 0


def parse_host(texts: list[str]) -> Host:
    """Return a host from texts such as ``10.0.0.1``, ``00:00:00:00:00:0b``, ``1:3`` or all of them with commas.

    Of six parts with colons is a MAC address; of two a dpid (decimal or 0x...) and a port number; else it is an
    IP address. InputError names the text that is none, or the second of a kind.
    """
    found: dict[str, bytes | SwitchPort] = {}
    for text in (part.strip() for joined in texts for part in joined.split(",")):
        kind, value = _host_part(text)
        if kind in found:
            raise InputError(f"--host {quoted(text)}: a second {kind}")
        found[kind] = value
    mac, ip = found.get("MAC address", _NO_MAC), found.get("IP address")
    port = found.get("dpid:port")
    dpid, port_no = port if isinstance(port, SwitchPort) else (0, 0)
    return Host(bytes(mac), ip if isinstance(ip, bytes) else None, dpid, port_no)


def _host_part(text: str) -> tuple[str, bytes | SwitchPort]:
    place = _SWITCH_PORT.match(text)
    if place:
        try:
            dpid, port_no = parse_dpid(place[1]), int(place[2])
        except ValueError as error:
            raise InputError(f"--host {quoted(text)}: {error}") from None
        if not 1 <= port_no <= MAX_PORT_NO:
            raise InputError(f"--host {quoted(text)}: port 1 to {MAX_PORT_NO} are possible")
        return "dpid:port", SwitchPort(dpid, port_no)
    try:
        if looks_like_mac(text):
            return "MAC address", parse_host_mac(text).mac
        return "IP address", _address(parse_host_prefix(text))
    except ValueError as error:
        raise InputError(f"--host {error}; expected an IP address, a MAC address or dpid:port") from None


def _group(text: str) -> bytes:
    try:
        group = _address(parse_prefix(text))
    except ValueError as error:
        raise InputError(f"--group {error}") from None
    if not is_multicast_ip(group):
        raise InputError(f"--group {quoted(text)} is not within the multicast addresses 224.0.0.0/4 or ff00::/8")
    return group


def _vlan(text: str | None, policy: Policy) -> int:
    """Return the VLAN of an id, of a name of the policy's, or of ``untagged``, which is 0 as where there is none."""
    if text is None or text == UNTAGGED:
        return OWN_DOMAIN
    names = {policy.vlans.given_name(vlan_id): vlan_id for vlan_id in policy.vlans.all_vlans()}
    if text in names:
        return names[text]
    if text.isascii() and text.isdecimal() and 1 <= int(text) <= MAX_VLAN_ID:
        return int(text)
    raise InputError(f"--vlan {quoted(text)} is neither 1 to {MAX_VLAN_ID}, nor the name of a VLAN of the policy's")


def _source(text: str, group: bytes) -> bytes:
    try:
        source = _address(parse_host_prefix(text))
    except ValueError as error:
        raise InputError(f"--source {error}") from None
    if len(source) != len(group):
        raise InputError(f"--source {quoted(text)} is not of the group's family")
    return source


def _address(prefix: Prefix) -> bytes:
    if prefix.length != 8 * len(prefix.network):
        raise ValueError(f"{str(prefix)!r} is a prefix, not one address")
    return prefix.network


def _tenants_of(policy: Policy, host: Host) -> list[str]:
    """Return the names of the tenants that a host is in."""

    def holds(term: object) -> bool:
        match term:
            case Prefix():
                return host.ip is not None and term.contains(host.ip)
            case SwitchPort():
                return term == (host.dpid, host.port_no)
        return term == (host.mac,)

    return [tenant.name for tenant in policy.tenants if any(holds(term) for term in tenant.hosts)]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
