"""Threads of the system's that ask a store and follow its keys, so that neither a loop nor a lease waits for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from apps.cluster.etcd import Access, EtcdEngine
from apps.system import system_queue, system_threading
from controller.cluster.engine import KeyChanges, Reply, Request, WatchReport

WATCH_WAIT_S = 0.5

Then: TypeAlias = Callable[[Reply], None]


class Askers:
    """Threads that ask the store, each by its own connection."""

    def __init__(self, access: Access, count: int) -> None:
        self._access = access
        self._orders: Any = system_queue.SimpleQueue()
        for _ in range(count):
            system_threading.Thread(target=self._run, name="store", daemon=True).start()

    def ask(self, request: Request, then: Then) -> None:
        """Have a request answered; `then` is called with the answer, on a thread."""
        self._orders.put((request, then))

    def _run(self) -> None:
        engine = EtcdEngine(self._access)
        while True:
            request, then = self._orders.get()
            then(engine.ask(request))


class Watcher:
    """Tells what changes below a prefix, on a thread of its own, until the watch ends or nobody wants it any more."""

    def __init__(self, access: Access, prefix: str, after_revision: int, tell: Callable[[WatchReport], None]) -> None:
        self.is_wanted = True
        self._what = (access, prefix, after_revision, tell)
        system_threading.Thread(target=self._run, name="watch", daemon=True).start()

    def _run(self) -> None:
        access, prefix, after_revision, tell = self._what
        engine = EtcdEngine(access)
        watch = engine.watch(prefix, after_revision)
        while self.is_wanted:
            report = watch.take(WATCH_WAIT_S)
            if report is not None and self.is_wanted:
                tell(report)
                if type(report) is not KeyChanges:
                    break
        watch.close()
        engine.close()
