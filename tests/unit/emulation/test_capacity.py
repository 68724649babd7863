from __future__ import annotations

from apps.emulation.capacity import METER_BASE, CapacityPort, HostInterface, flows, meter, shaper

HOST = HostInterface(4711, "h1-eth0")
PORT = CapacityPort("s1", "s1-eth3", 3, 10e6, HOST)


def test_meter_polices_at_the_capacity_with_a_burst_of_a_tenth_of_a_second() -> None:
    assert meter(PORT) == f"meter={METER_BASE + 3},kbps,burst,band=type=drop,rate=10000,burst_size=1000"
    assert "rate=1000000,burst_size=100000" in meter(PORT._replace(capacity_bps=1e9))


def test_ingress_rules_meter_each_port_and_let_discovery_pass() -> None:
    lines = flows([PORT, PORT._replace(port_no=4)]).splitlines()
    (third,) = [line for line in lines if f"meter:{METER_BASE + 3}" in line]
    assert "in_port=3" in third and "goto_table:1" in third
    assert [line for line in lines if f"meter:{METER_BASE + 4}" in line and "in_port=4" in line]
    (lldp,) = [line for line in lines if "0x88cc" in line]
    assert "meter" not in lldp and "goto_table:1" in lldp
    assert all("cookie=0," in line for line in lines)


def test_shaper_bounds_its_queue() -> None:
    commands = [" ".join(command) for command in shaper(PORT, HOST)]
    (queue,) = [command for command in commands if " tbf " in command]
    assert queue.endswith(" root tbf rate 10000000bit burst 5000 limit 125000")
    (redirection,) = [command for command in commands if "redirect" in command]
    assert "dev h1-eth0 " in redirection and redirection.split()[-1] == queue.split()[4]
