"""The how-to guides, command by command as they stand there, on switches and hosts."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.emulation import traffic
from apps.emulation.namespace import network_of
from apps.emulation.network import EmulatedFabric
from controller.wire.addresses import parse_ip, parse_mac
from controller.wire.encode import encode
from controller.wire.packets import PimHello, Query
from how_to import ROOT, SYSTEM_PATH, Reader, blocks, files, wait
from topology.generators import make

pytestmark = [pytest.mark.emulation, pytest.mark.unhurried]

NEEDS_SYSTEMD = "systemctl"
"""Tests have no service manager; the unit file has tests of its own."""


@pytest.fixture(scope="module")
def fabric() -> Iterator[EmulatedFabric]:
    with EmulatedFabric(make("fattree"), patch_links=True) as fabric:
        fabric.wait_addresses()
        yield fabric


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """Somebody in a checkout whose environment is first on the path."""
    for name in ("policies", "scenarios", "dashboards", ".venv"):
        (tmp_path / name).symlink_to(ROOT / name)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("VSRT_")}
    environment |= {"PATH": f"{Path(sys.executable).parent}:{SYSTEM_PATH}", "PYTHONPATH": str(ROOT)}
    with Reader(tmp_path, environment) as reader:
        yield reader


def write_files(reader: Reader, page: str) -> None:
    for name, text in files(page).items():
        (reader.directory / name).write_text(text, encoding="utf-8")


def wait_fabric(reader: Reader, fabric: EmulatedFabric) -> None:
    wanted = {"ready": True, "switches": len(fabric.graph.switches()), "links": fabric.switch_link_count()}
    wait(lambda: wanted.items() <= reader.ask({"show": "status"}).items())


def test_prometheus_and_a_policy(reader: Reader, fabric: EmulatedFabric) -> None:
    write_files(reader, "prometheus-and-grafana.md")
    serve, check = blocks("prometheus-and-grafana.md")
    assert "# HELP vsrt_" in reader.run(serve)
    assert "SUCCESS" in reader.run(check)
    wait_fabric(reader, fabric)
    written = [reader.run(block) for block in blocks("write-a-policy.md")]
    assert "tenant1-feed" in written[-1]
    assert json.loads((reader.directory / "policy.schema.json").read_text())["type"] == "object"


def test_an_open_fabric_gets_a_strict_policy(reader: Reader, fabric: EmulatedFabric) -> None:
    write_files(reader, "from-open-to-strict.md")
    start, propose, compare, staged, put, see = blocks("from-open-to-strict.md")
    listens, sends, outsider, later = filter(None, map(typed, blocks("from-open-to-strict.md", "text")))
    audit = reader.directory / "vsrt-state" / "audit.jsonl"

    def at_hosts(commands: list[tuple[str, str]]) -> None:
        for host, command in commands:
            reader.run(f"nsenter --net=/proc/{fabric.pid(host)}/ns/net -- {command}")

    reader.run(start)
    assert "no file" in reader.run(staged)
    wait_fabric(reader, fabric)
    fabric.announce()
    at_hosts(listens)
    wait(lambda: sum(len(group["members"]) for group in reader.ask({"show": "groups"})) == 10)
    at_hosts(sends)
    wait(lambda: audit.read_text().count('"role":"sender"') == 4)
    proposed = reader.run(propose)
    for terms in (
        "[10.0.0.5, 10.0.0.9, 10.0.0.13]",
        "[10.0.0.6, 10.0.0.10, 10.0.0.14]",
        "limits: {groups_per_port: 64}",
    ):
        assert terms in proposed
    assert "14 pairs of host and group decided alike, 0 would be refused, 0 admitted" in reader.run(compare)
    wait(lambda: "alike" in (told := reader.run(staged)) and "14" in told)  # those who are there are judged too
    at_hosts(outsider)
    wait(lambda: "10.0.0.7" in reader.run(staged))
    page = "curl --silent --fail --retry 20 --retry-connrefused --retry-delay 1 http://127.0.0.1:8181/api/v1/staged"
    wait(lambda: '"ip":"10.0.0.7"' in reader.run(page))
    assert sum(len(group["members"]) for group in reader.ask({"show": "groups"})) == 11
    reader.run(put)
    at_hosts(later)
    wait(lambda: "10.0.0.7" in reader.run(see))
    shown = wait(lambda: "10.0.0.13" in (found := reader.run(see)) and found)
    assert shown.count("10.0.0.7") == 1


def test_ports_are_allocated(reader: Reader, fabric: EmulatedFabric) -> None:
    write_files(reader, "allocate-ports.md")
    from_file, live, with_more = blocks("allocate-ports.md")
    assert "s1-2" in reader.run(from_file)
    serve, rest = live.split("\n", 1)
    reader.run(serve)
    wait_fabric(reader, fabric)
    wait(lambda: len(reader.ask({"do": "allocate-watch", "type": "tor", "role": "trunk"})["ports"]) == 16)
    reader.run(rest)
    assert len(json.loads(reader.run(with_more))["ports"]) == 4


def test_feeds_are_given_their_addresses(reader: Reader, fabric: EmulatedFabric) -> None:
    write_files(reader, "give-feeds-addresses.md")
    start, take, in_a_script, taken, give_back, label = blocks("give-feeds-addresses.md")
    reader.run(start)
    wait_fabric(reader, fabric)
    told = reader.run(take)
    assert told.count("239.192.10.0") == 2
    assert "cam8 sends to 239.192.10.1" in reader.run(in_a_script)
    shown = reader.run(taken)
    assert "512" in shown
    assert "01:00:5e:40:0a:01" in shown
    assert "239.192.10.0" in reader.run(give_back)
    assert "feed=cam8" in reader.run(label)


def test_a_workflow_is_run(reader: Reader, fabric: EmulatedFabric) -> None:
    write_files(reader, "run-a-workflow.md")
    start, before, do, resume, at_one, refused = blocks("run-a-workflow.md")
    reader.run(start)
    wait_fabric(reader, fabric)
    fabric.announce()
    wait(lambda: reader.ask({"show": "status"})["hosts"] == len(fabric.graph.hosts()))
    listed = reader.run(before)
    assert "cameras.yaml" in listed and "evening.yaml" not in listed
    told = reader.run(do)
    assert "7 of 7 items are done" in told
    assert sum(" core " in line and line.endswith("work=planned") for line in told.splitlines()) == 4
    assert told.count("static-member-add") == 2
    assert "7 of 7 items are done" in reader.run(resume)
    told = reader.run(at_one)
    assert "5 of 5 items are done" in told
    assert sum(" trunk " in line and line.endswith("work=today") for line in told.splitlines()) == 4
    assert "refused, and nothing is done" in reader.run(refused)
    assert not any(switch["drained"] for switch in json.loads(reader.run("vsrt show switches --json")))


def test_a_port_is_diagnosed(reader: Reader, fabric: EmulatedFabric) -> None:
    policy = reader.directory / "policy.yaml"
    policy.write_text(
        "version: 1\ndefault: allow\n"
        "monitor: {interval_s: 1, history: {part_interval_s: 1}, roll_ups: {part_interval_s: 1}}\n"
    )
    reader.run("vsrt run --config policy.yaml multicast unicast monitor anomaly")
    wait_fabric(reader, fabric)
    *asked, with_peers, for_itself = blocks("diagnose-a-port.md")
    history = reader.directory / "vsrt-state" / "history"
    wait(lambda: list(history.glob("counters/*.parquet")))
    for block in asked:
        reader.run(block)
    wait(lambda: list(history.glob("roll-ups-1min/*.parquet")), 150)
    reader.run(with_peers)
    assert "category" in reader.run(for_itself)


def test_a_fabric_is_planned(reader: Reader) -> None:
    printed = [reader.run(block) for block in blocks("plan-a-fabric.md")]
    assert "No trees have a busiest link below" in printed[1]
    assert list((reader.directory / "plots").glob("*.png"))


def test_ports_are_put_into_vlans(reader: Reader, fabric: EmulatedFabric) -> None:
    write_files(reader, "vlans.md")
    with (reader.directory / "vlans.yaml").open("a") as policy:
        policy.write("check: {interval_s: 2}\n")  # what switches drop is counted as often
    start, see_ports, see_groups, see_dropped, move = blocks("vlans.md")
    joins, sends, wrong_tag = filter(None, map(typed, blocks("vlans.md", "text")))

    def at_hosts(commands: list[tuple[str, str]]) -> None:
        for host, command in commands:
            reader.run(f"nsenter --net=/proc/{fabric.pid(host)}/ns/net -- {command}")

    def status() -> Any:
        return reader.ask({"show": "status"})

    def members() -> dict[str, list[str]]:
        groups = reader.ask({"show": "groups"})
        return {group["group"]: sorted(member["ip"] for member in group["members"]) for group in groups}

    reader.run(start)
    wait_fabric(reader, fabric)
    fabric.announce()
    shown = reader.run(see_ports)
    assert "storage" in shown and "video" in shown
    at_hosts(joins)
    wait(lambda: members() == {"239.1.1.1@10": ["10.0.0.5"], "239.1.1.1@20": ["10.0.0.6"]})
    at_hosts(sends)
    shown = reader.run(see_groups)
    assert "239.1.1.1@10" in shown and "10.0.0.6" in shown and "10.0.0.2" in shown
    for host, sender, other in (("h5", "10.0.0.1", "10.0.0.2"), ("h6", "10.0.0.2", "10.0.0.1")):
        heard = (reader.directory / f"{host}.log").read_text()
        assert f"connected with {sender}" in heard and f"connected with {other}" not in heard
    at_hosts(wrong_tag)
    wait(lambda: status()["counters"].get("vlan-tagged") == 25, 120)
    wait(lambda: "vlan-tagged" in reader.run("vsrt show status"))  # which tells counters once a second
    assert "25" in reader.run(see_dropped)
    assert "good" in reader.run(move)
    at_hosts(joins[:1])
    wait(lambda: members().get("239.1.1.1@20") == ["10.0.0.5"])


def test_receivers_of_several_vlans_get_one_stream(reader: Reader, fabric: EmulatedFabric) -> None:
    write_files(reader, "multicast-vlan.md")
    start, see_groups, see_refusals = blocks("multicast-vlan.md")
    joins, sends, sends_elsewhere = filter(None, map(typed, blocks("multicast-vlan.md", "text")))

    def at_hosts(commands: list[tuple[str, str]]) -> None:
        for host, command in commands:
            reader.run(f"nsenter --net=/proc/{fabric.pid(host)}/ns/net -- {command}")

    (leaf3,) = (switch for switch in fabric.graph.switches() if fabric.dpid(switch) == 3)
    assert "good" in reader.run(start)
    wait_fabric(reader, fabric)
    fabric.announce()
    at_hosts(joins)
    wait(lambda: reader.ask({"show": "status"})["in_sync"])
    asked_for = ("239.5.1.1@20", "239.5.1.1@30")
    wait(lambda: {*asked_for} <= {found["group"] for found in reader.ask({"show": "groups"})})
    at_hosts(sends)
    shown = reader.run(see_groups)
    assert shown.count("of VLAN tv") == 2
    assert "VLAN home" in shown and "10.0.0.1" in shown
    for host in ("h5", "h6"):
        assert "connected with 10.0.0.1" in (reader.directory / f"{host}.log").read_text()
    entries = fabric.ofctl("dump-flows", leaf3, "table=6,ip,nw_dst=239.5.1.1").splitlines()
    (line,) = [line for line in entries if "nw_dst=239.5.1.1" in line]
    assert line.endswith("actions=pop_vlan,output:1,output:2")
    at_hosts(sends_elsewhere)
    wait(lambda: "vlans.mvr" in reader.run(see_refusals))


def test_a_feed_is_marked(reader: Reader, fabric: EmulatedFabric) -> None:
    write_files(reader, "mark-a-feed.md")
    start, read, see = blocks("mark-a-feed.md")
    listens, sends = filter(None, map(typed, blocks("mark-a-feed.md", "text")))

    def at_hosts(commands: list[tuple[str, str]]) -> None:
        for host, command in commands:
            reader.run(f"nsenter --net=/proc/{fabric.pid(host)}/ns/net -- {command}")

    assert "good" in reader.run(start)
    wait_fabric(reader, fabric)
    fabric.announce()
    at_hosts(listens)
    wait(lambda: {"239.1.1.1", "239.2.1.1"} <= {found["group"] for found in reader.ask({"show": "groups"})})
    wait(lambda: reader.ask({"show": "status"})["in_sync"])
    wait(lambda: "listening on" in (reader.directory / "h5-tcpdump.log").read_text())
    at_hosts(sends)
    wait(lambda: "10.0.0.2" in reader.run(read))
    marked = {line.split(maxsplit=1)[1] for line in reader.run(read).splitlines()}
    to_groups = {"10.0.0.1 239.1.1.1 0xb8", "10.0.0.1 239.2.1.1 0x4", "10.0.0.2 239.1.1.1 0x88"}
    assert marked == {*to_groups, "10.0.0.1 10.0.0.5 0x0"}
    shown = reader.run(see)
    assert shown.count("DSCP 46") == 1


def test_a_hot_group_gets_more_paths(reader: Reader, fabric: EmulatedFabric) -> None:
    write_files(reader, "more-paths.md")
    start, see, follow, why, by_hand, divide, _ = blocks("more-paths.md")
    (traffic_of_hosts,) = filter(None, map(typed, blocks("more-paths.md", "text")))

    def group() -> Any:
        return next((found for found in reader.ask({"show": "groups"}) if found["group"] == "239.1.1.1"), None)

    def split() -> list[int]:
        found = group()
        numbers = [sender["alias"] or 0 for sender in found["senders"]] if found else []
        return sorted(numbers)

    assert "good" in reader.run(start)
    wait_fabric(reader, fabric)
    fabric.announce()
    for host, command in traffic_of_hosts:
        reader.run(f"nsenter --net=/proc/{fabric.pid(host)}/ns/net -- {command}")
        if host == "h5":
            wait(lambda: group() and [alias["state"] for alias in group()["aliases"]] == ["bound"])
    wait(lambda: split() == [0, 0, 1, 1])
    assert "2 + 2" in reader.run(see)
    reader.run(follow)
    wait(lambda: "gets an alias from the pool, to wait less: " in reader.run(why), 90)
    wait(lambda: split() == [0, 0, 1, 1])
    before = len(group()["aliases"])
    assert before == 1
    told = reader.run(by_hand)
    assert f"aliases from now: {before + 1}" in told
    assert "gives an alias back" in told
    reader.run(divide)
    wait(lambda: all(sender["divided"] for sender in group()["senders"]) and len(group()["aliases"]) == 1)
    assert " parts of flows " in reader.run(see)
    assert group()["flow_parts"] + sum(alias["flow_parts"] for alias in group()["aliases"]) == 32


def test_a_fabric_has_more_groups_than_its_tables_hold(reader: Reader, fabric: EmulatedFabric) -> None:
    write_files(reader, "small-tables.md")
    start, see, by_hand = blocks("small-tables.md")
    (traffic_of_hosts,) = filter(None, map(typed, blocks("small-tables.md", "text")))
    assert "good" in reader.run(start)
    wait_fabric(reader, fabric)
    fabric.announce()
    for host, command in traffic_of_hosts:
        reader.run(f"nsenter --net=/proc/{fabric.pid(host)}/ns/net -- {command}")
        if host == "h5":
            wait(lambda: reader.ask({"show": "status"})["groups"] >= 1000)
    assert "s1          1        70" in reader.run(see)
    assert 30 <= sum(1 for found in reader.ask({"show": "groups"}) if not found["out"]) < 60
    reader.run(by_hand)
    wait(lambda: "3000 packets arrived" in (reader.directory / "received.log").read_text())


def test_routers_are_attached(reader: Reader, fabric: EmulatedFabric) -> None:
    """What FRR and a proxy do with the guide's configurations is tested in test_routers_live.py."""
    write_files(reader, "routers.md")
    start, see, on_join, on_request, proxied = blocks("routers.md")
    assert "allow" in reader.run(start)
    wait_fabric(reader, fabric)
    fabric.announce()
    wait(lambda: reader.ask({"show": "status"})["hosts"] >= 16)
    for host in ("h5", "h6"):
        mac, address = parse_mac(fabric.node(host).MAC()), parse_ip(fabric.address(host))
        spoken = (Query(4, 3, mac, address, None, (), 10.0, False, 2, 125.0), PimHello(4, mac, address, 105.0))
        with network_of(fabric.pid(host)), traffic.open_wire(fabric.interface(host)) as wire:
            for packet in spoken:
                wire.send(encode(packet))

    def known() -> dict[str, dict[str, Any]]:
        ports = reader.ask({"show": "routers"})["router_ports"]
        return {address: port for port in ports if port["family"] == 4 for address in port["routers"]}

    wait(lambda: {"10.0.0.5", "10.0.0.6"} <= known().keys())
    assert reader.run(see).count("router port of IPv4  s3:") == 2
    assert "good" in reader.run(on_join)
    wait(lambda: known()["10.0.0.5"]["joined"])
    assert "10.0.0.5, joined 0 groups" in reader.run(see)
    assert "good" in reader.run(on_request)
    wait(lambda: any(port["on_request"] for port in known().values()))
    assert "gets what it asks for" in reader.run(see)
    assert "good" in reader.run(proxied)
    assert wait(lambda: known()["10.0.0.5"]["reported"])["groups"] == []
    assert "10.0.0.5, is reported 0 groups in IGMPv3" in reader.run(see)


def typed(block: str) -> list[tuple[str, str]]:
    """Return what is typed at Mininet's prompt, by host."""
    lines = (line.removeprefix("mininet> ").split(" ", 1) for line in block.splitlines() if "mininet> " in line)
    return [(host, command) for host, command in lines]


def test_what_is_not_run_needs_a_service_manager_containers_or_a_long_build() -> None:
    with_an_installation = {"own-switches.md", "upgrade.md"}
    run_here = {"prometheus-and-grafana.md", "write-a-policy.md", "allocate-ports.md", "vlans.md", "routers.md"}
    run_here |= {"multicast-vlan.md", "mark-a-feed.md", "more-paths.md", "from-open-to-strict.md", "small-tables.md"}
    run_here |= {"diagnose-a-port.md", "plan-a-fabric.md", "give-feeds-addresses.md", "run-a-workflow.md"}
    pages = {path.name for path in (ROOT / "docs" / "how-to").glob("*.md")} - {"index.md"}
    built_in_a_wheel = {"compile-the-cores.md"}
    by_queues = {"give-a-feed-priority.md"}  # test_priority_guide_live.py
    by_tls = {"encrypt-openflow.md"}  # test_tls_live.py
    by_bonds = {"bonds.md"}  # test_bonds_live.py
    by_fabrics = {"several-fabrics.md"}  # test_fabrics_live.py
    by_cluster = {"several-controllers.md"}  # test_cluster_live.py
    by_campaigns = {"upgrade-every-switch.md"}  # test_maintenance_live.py
    by_probes = {"ask-the-controller.md"}  # tests/unit/cli/test_probe_guide.py
    by_storms = {"size-a-controller.md"}  # tests/unit/storm/test_storm_guide.py
    by_profiles = {"where-the-time-goes.md"}  # tests/unit/profiles/test_profile_guide.py
    by_captures = {"replay-a-capture.md"}  # test_replay_live.py
    by_scaling = {"scale-monitors.md"}  # tests/unit/cluster/test_scaling_guide.py
    by_import = {"move-from-faucet.md"}  # tests/unit/migration/test_faucet_guide.py
    by_templates = {"hold-switches-to-a-template.md"}  # test_template_live.py
    elsewhere = by_profiles | by_scaling | by_storms | by_queues | by_tls | by_bonds | by_fabrics
    elsewhere |= by_cluster | by_campaigns | by_probes | by_captures | by_import | by_templates
    assert pages - run_here - with_an_installation - elsewhere == {"run-as-a-service.md"} | built_in_a_wheel
    (left_out,) = (block for block in blocks("upgrade.md") if NEEDS_SYSTEMD in block)
    assert left_out == blocks("upgrade.md")[2]
