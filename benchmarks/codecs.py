"""Decoding of membership reports, beside the packet libraries of Ryu and os-ken."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from importlib import import_module

from measure import Summary, print_json, print_table, summarise, time_per_call_us

from controller.wire.addresses import parse_ip, parse_mac
from controller.wire.encode import encode
from controller.wire.frame import decode
from controller.wire.packets import GroupRecord, RecordType, Report

PEERS = ("ryu", "os_ken")


def frames() -> dict[str, bytes]:
    """The frames that are decoded, by name."""
    mac, host, host6 = parse_mac("02:00:00:00:00:01"), parse_ip("10.0.0.1"), parse_ip("fe80::1")
    groups = [parse_ip(f"239.1.2.{last}") for last in range(10)]
    join = [GroupRecord(RecordType.CHANGE_TO_EXCLUDE, group) for group in groups]
    filtered = GroupRecord(
        RecordType.ALLOW_NEW_SOURCES, groups[0], tuple(parse_ip(f"10.0.1.{n}") for n in range(1, 5))
    )
    join6 = GroupRecord(RecordType.CHANGE_TO_EXCLUDE, parse_ip("ff1e::1234"))
    reports = {
        "IGMPv3, 1 record": Report(4, 3, mac, host, tuple(join[:1])),
        "IGMPv3, 10 records": Report(4, 3, mac, host, tuple(join)),
        "IGMPv3, 1 record, 4 sources": Report(4, 3, mac, host, (filtered,)),
        "IGMPv2": Report(4, 2, mac, host, (join[0]._replace(type=RecordType.MODE_IS_EXCLUDE),)),
        "MLDv2, 1 record": Report(6, 2, mac, host6, (join6,)),
        "MLDv1": Report(6, 1, mac, host6, (join6._replace(type=RecordType.MODE_IS_EXCLUDE),)),
    }
    return {name: encode(report) for name, report in reports.items()}


def contenders(frame: bytes) -> dict[str, Callable[[], object]]:
    """The decoders of one frame, ours first; a framework that is not installed is left out."""
    found: dict[str, Callable[[], object]] = {"ours": lambda: decode(frame)}
    for peer in PEERS:
        try:
            library = import_module(f"{peer}.lib.packet.packet")
        except ImportError:
            print(f"{peer} is not installed", file=sys.stderr)
            continue
        found[peer] = lambda library=library: library.Packet(frame)
    return found


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON in place of a table")
    parser.add_argument("--repeats", type=int, default=15, help="samples of each decoder (default 15)")
    arguments = parser.parse_args()
    found: list[tuple[str, str, Summary, float]] = []
    for name, frame in frames().items():
        samples = time_per_call_us(contenders(frame), repeats=arguments.repeats)
        summaries = {decoder: summarise(values) for decoder, values in samples.items()}
        for decoder, summary in summaries.items():
            ratio = summary.median / summaries["ours"].median
            found.append((name, decoder, summary, ratio))
    if arguments.json:
        names = ("frame", "decoder", "decode_us", "ratio_to_ours")
        results = [dict(zip(names, row, strict=True)) for row in found]
        print_json({"benchmark": "codecs", "repeats": arguments.repeats, "results": results})
        return 0
    heading = ("frame", "decoder", "median us", "IQR us", "min to max us", "ratio to ours")
    print_table(
        heading,
        [
            (
                frame,
                decoder,
                us.median,
                f"{us.first_quartile:.2f} to {us.third_quartile:.2f}",
                f"{us.minimum:.2f} to {us.maximum:.2f}",
                ratio,
            )
            for frame, decoder, us, ratio in found
        ],
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
