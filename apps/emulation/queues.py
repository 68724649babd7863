"""Has the queues that Open vSwitch sets up at emulated ports take effect where the datapath is in user space.

There `set_queue` reaches no queue of the kernel. The code point that packets of a class have does: a filter at each
port sorts by it into the class of the shaper that Open vSwitch made of the queue (tc-u32(8), tc-htb(8)).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from apps.emulation import processes

QUEUE_PACKETS = 100
"""What a queue of a port holds, as the length that its interface has when the queue is made: 120 ms at 10 Mbit/s."""

_ROOT = "1:"
_ALL_OF_DSCP = "0xfc"


def bound(interfaces: Iterable[str]) -> None:
    """Bound the queues that ports will have: as long as veth pairs have them, packets would wait for seconds."""
    for interface in interfaces:
        processes.run("ip", "link", "set", interface, "txqueuelen", str(QUEUE_PACKETS))


def sort_by_dscp(interfaces: Iterable[str], queues: Mapping[int, int]) -> None:
    """Have IPv4 packets wait in the queue of their code point, others in queue 0, at ports that have queues.

    `queues` maps code points to queue ids. EmulationError where a port has none yet.
    """
    for interface in interfaces:
        processes.run("tc", "filter", "del", "dev", interface, "parent", _ROOT)
        for dscp, queue_id in queues.items():
            match = ("u32", "match", "ip", "dsfield", f"{dscp << 2:#04x}", _ALL_OF_DSCP)
            where = ("dev", interface, "parent", _ROOT, "protocol", "ip", "prio", "1")
            processes.run("tc", "filter", "add", *where, *match, "flowid", f"{_ROOT}{queue_id + 1:x}")
