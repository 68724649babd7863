"""What a shared store in etcd takes: records put in bundles, over its JSON gateway and over gRPC.

    etcd --data-dir DIR &
    python benchmarks/cluster_engine.py [--endpoint http://127.0.0.1:2379] [--seconds 5] [--bundle 100] [--json]

A bundle is one transaction, fenced as the journal's are, of records with 200 bytes each; the next one is sent when
the last one is answered. gRPC is measured where the package `grpcio` is installed. Processor time is this process's.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

from measure import Measurement, report

from apps.cluster.etcd import Access, EtcdEngine
from controller.cluster.engine import Committed, KeyCondition, PutKey, Transaction

PREFIX = "/vsrt-benchmark/"
VALUE = "x" * 200


def bundle_of(turn: int, size: int, revision: int) -> Transaction:
    """Return a transaction that puts so many records, 10,000 keys in turn."""
    keys = (f"{PREFIX}journal/{(turn * size + number) % 10_000:05}" for number in range(size))
    return Transaction((KeyCondition(f"{PREFIX}epoch", revision),), tuple(PutKey(key, VALUE) for key in keys), True)


def field(number: int, data: bytes | int) -> bytes:
    """Return a field of a Protocol Buffers message."""
    if isinstance(data, int):
        return varint(number << 3) + varint(data)
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    """Return a number as Protocol Buffers write it."""
    octets = bytearray()
    while value > 0x7F:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*octets, value))


def message(transaction: Transaction) -> bytes:
    """Return a transaction as gRPC has it: the comparison of revisions, and puts."""
    compares = (
        field(1, field(2, 2) + field(3, condition.key.encode()) + field(6, condition.revision))
        for condition in transaction.conditions
    )
    puts = (
        field(2, field(2, field(1, edit.key.encode()) + field(2, edit.value.encode())))
        for edit in transaction.edits
        if type(edit) is PutKey
    )
    return b"".join((*compares, *puts))


def over_grpc(endpoint: str) -> Callable[[Transaction], bool] | None:
    """Return what sends a transaction over gRPC and says whether it was done; None without grpcio."""
    try:
        import grpc
    except ImportError:
        return None
    call = grpc.insecure_channel(urlsplit(endpoint).netloc).unary_unary("/etcdserverpb.KV/Txn")
    return lambda transaction: b"\x10\x01" in call(message(transaction), timeout=10)[:64]


def measured(send: Callable[[Transaction], bool], seconds: float, size: int, revision: int) -> Iterator[Measurement]:
    """Send bundles for a time."""
    begun_s, cpu_s, took_ms = time.perf_counter(), time.process_time(), []
    while (at_s := time.perf_counter()) < begun_s + seconds:
        assert send(bundle_of(len(took_ms), size, revision))
        took_ms.append((time.perf_counter() - at_s) * 1e3)
    count = len(took_ms) * size
    yield Measurement("records per second", "1/s", [count / (time.perf_counter() - begun_s)])
    yield Measurement("processor time per record", "us", [(time.process_time() - cpu_s) / count * 1e6])
    yield Measurement("time of a bundle", "ms", took_ms)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--endpoint", default="http://127.0.0.1:2379")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--bundle", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    engine = EtcdEngine(Access((args.endpoint,)), 10.0)
    reply = engine.ask(Transaction((), (PutKey(f"{PREFIX}epoch", "1"),), True))
    assert type(reply) is Committed, reply
    ways = {"JSON gateway": lambda transaction: type(engine.ask(transaction)) is Committed}
    if (grpc_way := over_grpc(args.endpoint)) is not None:
        ways["gRPC"] = grpc_way
    measurements = [
        entry._replace(name=f"{name}: {entry.name}")
        for name, send in ways.items()
        for entry in measured(send, args.seconds, args.bundle, reply.revision)
    ]
    report(measurements, as_json=args.json, source="cluster_engine")


if __name__ == "__main__":
    main()
