"""`vsrt cluster check`: whether the store that controllers share is fit for it, by each of its servers."""

from __future__ import annotations

import argparse
import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPException
from typing import Any, NamedTuple

from apps.cli.cluster_store import ClusterStore, add_policy, open_store
from apps.cli.common import emit_json, emit_table
from apps.cluster.etcd import EtcdEngine, EtcdError
from controller.cluster.engine import Compacted, KeyPage, ReadPage, Silent
from controller.cluster.keys import Keys, read_leader, read_present
from controller.cluster.share_records import read_manager
from controller.cluster.strangers import are_apart

HELP = "say whether the store is fit: each server, its version, space, compaction and certificate; and who is there"

OLDEST_VERSION = (3, 4)
SLOW_S = 0.1
FULL = 0.7
"""The part of the space from which on the store is told to be nearly full; when it is full nothing is written."""

DEFAULT_QUOTA_BYTES = 2 << 30
REVISIONS_BOUND = 10_000
"""Revisions that a store has, none of them compacted, from which on nothing compacts it."""

CERTIFICATE_DAYS = 21
_QUOTA = re.compile(r"^etcd_server_quota_backend_bytes ([0-9.e+]+)$", re.MULTILINE)


class CheckedFact(NamedTuple):
    """What was looked at, where, how it is, and whether that is as it has to be."""

    check: str
    where: str
    is_good: bool
    text: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the policy file."""
    parser.epilog = "Status 0: all is as it has to be; 1: something is not; 2: bad words. Nothing is changed."
    add_policy(parser)


def run(args: argparse.Namespace) -> int:
    """Look at each server, and at the keys of the fabric."""
    store = open_store(args)
    findings = [finding for endpoint in store.access.endpoints for finding in _server(store, endpoint)]
    findings += _versions(findings)
    findings += _stores(findings)
    findings += _fabric(store)
    good = all(finding.is_good for finding in findings)
    if args.json:
        emit_json({"fit": good, "findings": [finding._asdict() for finding in findings]})
    else:
        rows = ((each.check, each.where, "ok" if each.is_good else "NOT FIT", each.text) for each in findings)
        emit_table(("CHECK", "WHERE", "", "WHAT IT IS"), rows)
    return 0 if good else 1


def _server(store: ClusterStore, endpoint: str) -> Iterator[CheckedFact]:
    engine = EtcdEngine(store.access._replace(endpoints=(endpoint,)))

    def finding(check: str, is_good: bool, text: str) -> CheckedFact:
        return CheckedFact(check, endpoint, is_good, text)

    begun_s = time.monotonic()
    page = engine.ask(ReadPage(Keys(store.settings.fabric).root, limit=1))
    took_s = time.monotonic() - begun_s
    if type(page) is not KeyPage:
        yield finding("answers", False, getattr(page, "why", "it gives no answer"))
        return
    slow = "" if took_s < SLOW_S else f", which is slow: {SLOW_S:g} s is much"
    yield finding("answers", not slow, f"it answered in {took_s * 1e3:.0f} ms{slow}")
    try:
        status = engine.question("/v3/maintenance/status")
        yield finding("version", True, f"etcd {status.get('version', 'of an unknown version')}")
        yield finding("store", True, f"it is of store {int(status['header']['cluster_id']):x}")
        alarms = engine.question("/v3/maintenance/alarm", {"action": "GET"}).get("alarms", ())
        yield from _space(engine, status, alarms, finding)
        members = engine.question("/v3/cluster/member/list").get("members", ())
    except (EtcdError, OSError, HTTPException, ValueError, KeyError) as error:
        yield finding("status", False, f"it does not tell its status ({error})")
        return
    leads = "" if int(status.get("leader", 0)) else ", and no leader"
    text = f"the store has {len(members)} server{'s' * (len(members) != 1)}{leads}"
    if len(members) < 3:
        text += ": with fewer than 3 the end of one is the end of all"
    yield finding("servers", not leads, text)
    yield _compaction(engine, page.revision, finding)
    if endpoint.startswith("https"):
        yield _certificate(engine, finding)


def _space(
    engine: EtcdEngine, status: dict[str, Any], alarms: Any, finding: Callable[[str, bool, str], CheckedFact]
) -> Iterator[CheckedFact]:
    found = _QUOTA.search(engine.metrics() or "")
    quota_bytes = float(found[1]) if found else 0.0
    known = "" if quota_bytes > 0 else ", as is usual"
    quota_bytes = quota_bytes if quota_bytes > 0 else DEFAULT_QUOTA_BYTES
    used_bytes = int(status.get("dbSize", 0))
    text = f"{used_bytes / 1e6:.1f} MB of {quota_bytes / 1e6:.0f} MB{known} are in use"
    if any(alarm.get("alarm") == "NOSPACE" for alarm in alarms):
        yield finding("space", False, f"{text}, and it takes no more writes: compact, defragment, disarm the alarm")
        return
    yield finding("space", used_bytes < FULL * quota_bytes, text)


def _compaction(engine: EtcdEngine, revision: int, finding: Callable[[str, bool, str], CheckedFact]) -> CheckedFact:
    """Tell whether old revisions go: whether the first one is still there."""
    reply = engine.ask(ReadPage("/", revision=1, limit=1))
    if type(reply) is Compacted:
        return finding("compaction", True, f"old ones of {revision} revisions are gone")
    if type(reply) is Silent:
        return finding("compaction", False, reply.why)
    if revision < REVISIONS_BOUND:
        return finding("compaction", True, f"there are {revision} revisions yet: too few to tell")
    text = (
        f"all {revision} revisions are kept, until there is no space: start etcd with "
        "--auto-compaction-retention=5m, unless it was set up minutes ago"
    )
    return finding("compaction", False, text)


def _certificate(engine: EtcdEngine, finding: Callable[[str, bool, str], CheckedFact]) -> CheckedFact:
    until = engine.certificate().get("notAfter")
    if not isinstance(until, str):
        return finding("certificate", False, "it shows none")
    days = (ssl.cert_time_to_seconds(until) - time.time()) / 86400
    return finding("certificate", days > CERTIFICATE_DAYS, f"it is valid until {until}, for {days:.0f} days")


def _versions(findings: list[CheckedFact]) -> Iterator[CheckedFact]:
    """Tell what of the versions of all servers is not as it has to be."""
    versions = {each.where: each.text.removeprefix("etcd ") for each in findings if each.check == "version"}
    for where, version in versions.items():
        numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
        if numbers < OLDEST_VERSION:
            oldest = ".".join(map(str, OLDEST_VERSION))
            yield CheckedFact("version", where, False, f"etcd {version} is older than {oldest}")
    if len(set(versions.values())) > 1:
        text = f"they are of versions {', '.join(sorted(set(versions.values())))}, which is for upgrades only"
        yield CheckedFact("version", "all servers", True, text)


def _stores(findings: list[CheckedFact]) -> Iterator[CheckedFact]:
    """Tell where servers are not of one store: each would have a leader of its own."""
    stores = {each.text for each in findings if each.check == "store"}
    if len(stores) > 1:
        text = f"they are of {len(stores)} stores, which know nothing of each other: each would have another one lead"
        yield CheckedFact("store", "all servers", False, text)


def _fabric(store: ClusterStore) -> Iterator[CheckedFact]:
    fabric = store.settings.fabric
    keys, engine = Keys(fabric), EtcdEngine(store.access)
    lead, shares = engine.ask(ReadPage(keys.lead)), engine.ask(ReadPage(keys.share))
    where = f"fabric {fabric}"
    if type(lead) is not KeyPage or type(shares) is not KeyPage:
        yield CheckedFact("members", where, False, "the store gave no answer")
        return
    held = {each.key: each.value for each in (*lead.held, *shares.held)}
    for check, prefix, key, read, what in (
        ("members", keys.members, keys.leader, read_leader, "leads"),
        ("monitors", keys.monitors, keys.manager, read_manager, "divides"),
    ):
        names = [name.removeprefix(prefix) for name in held if name.startswith(prefix)]
        if not names and check == "monitors":
            continue
        head = read(held[key]) if key in held else None
        who = None if head is None else head[0]
        text = f"{', '.join(names) or 'nobody'}; {who or 'nobody'} {what}"
        yield CheckedFact(check, where, who is not None or not names, text)
    yield from _switches(keys, held, where)


def _switches(keys: Keys, held: Mapping[str, str], where: str) -> Iterator[CheckedFact]:
    """Tell of members that have no switch in common with the leader: they may be of another fabric of this name."""
    leader = read_leader(held.get(keys.leader, ""))
    present = {
        key.removeprefix(keys.members): found
        for key, value in held.items()
        if key.startswith(keys.members) and (found := read_present(value)) is not None
    }
    if leader is None or leader.member not in present:
        return
    for name, found in present.items():
        if are_apart(found.dpids, present[leader.member].dpids):
            text = (
                f"{name} is connected to none of the switches of {leader.member}, which leads: is it another fabric?"
            )
            yield CheckedFact("switches", where, False, text)
