"""How far a replica of the journal in etcd is behind its writer, at a given rate.

    etcd --data-dir DIR &
    python benchmarks/cluster_journal.py [--endpoint http://127.0.0.1:2379] [--rate 2000] [--seconds 10] [--json]

A writer hands entries over as an app's loop does: what came while a commit was under way is in the next one. In
another thread a replica follows by a watch. The lag is from the moment an entry is written to when the
replica has it.
"""

from __future__ import annotations

import argparse
import threading
import time

from measure import Measurement, report

from apps.cluster.engine_log import EngineLog
from apps.cluster.etcd import Access, EtcdEngine
from controller.cluster.engine import Committed, KeyChanges, KeyCondition, KeyPage, PutKey, ReadPage, Transaction
from controller.cluster.journal import Replica
from controller.cluster.keys import Keys
from controller.log import LogEntry, LogEntryKind, Waiting, WriteLog

KEYS_WRITTEN = 10_000
STEP_S = 0.01
END_S = 10.0


class Follower:
    """A replica in a thread, and how late it had each entry, in seconds."""

    def __init__(self, access: Access, prefix: str) -> None:
        engine, self.replica = EtcdEngine(access, 10.0), Replica(prefix)
        asked: object = self.replica.begin()
        while isinstance(asked, ReadPage):
            page = engine.ask(asked)
            assert type(page) is KeyPage, page
            asked = self.replica.read(page)
        self._watch = engine.watch(prefix, self.replica.revision)
        self.lags_s: list[float] = []
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self._follow, daemon=True)
        self.thread.start()

    def _follow(self) -> None:
        while not self.is_over.is_set():
            told = self._watch.take(0.1)
            if told is None:
                continue
            assert type(told) is KeyChanges, told
            now = time.monotonic()
            values = (entry.value for entry in self.replica.follow(told))
            self.lags_s += [now - value["at_s"] for value in values if value is not None]
        self._watch.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--endpoint", default="http://127.0.0.1:2379")
    parser.add_argument("--rate", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    access, keys = Access((args.endpoint,)), Keys("benchmark")
    engine = EtcdEngine(access, 10.0)
    reply = engine.ask(Transaction((), (PutKey(keys.epoch, "1"),), True))
    assert type(reply) is Committed, reply
    log = EngineLog(engine, "benchmark", KeyCondition(keys.epoch, reply.revision, "1"), lambda: None)
    revision, _ = log.read()
    follower, waiting = Follower(access, keys.journal), Waiting(revision)
    begun_s, count, commits_ms = time.monotonic(), 0, []
    pad = "x" * 150
    while (now := time.monotonic()) < begun_s + args.seconds:
        due = int((now - begun_s) * args.rate)
        if due == count:
            time.sleep(STEP_S)
            continue
        for number in range(count, due):
            value = {"at_s": begun_s + number / args.rate, "pad": pad}
            key = f"host/{number % KEYS_WRITTEN:05}"
            waiting.take(WriteLog((LogEntry.of_record(LogEntryKind.OBSERVATION, key, value),)))
        count = due
        assert log.commit(waiting.batch()), log.trouble
        commits_ms.append((time.monotonic() - now) * 1e3)
    ends_s = time.monotonic() + END_S
    while len(follower.lags_s) < count and time.monotonic() < ends_s:
        time.sleep(STEP_S)
    follower.is_over.set()
    follower.thread.join()
    measurements = [
        Measurement("entries written", "1/s", [count / args.seconds]),
        Measurement("entries that the replica had", "", [len(follower.lags_s)]),
        Measurement("lag of the replica", "s", follower.lags_s),
        Measurement("a commit", "ms", commits_ms),
    ]
    report(measurements, as_json=args.json, source="cluster_journal")


if __name__ == "__main__":
    main()
