"""The process's one page for Prometheus, to which every app adds its figures.

A scrape touches no core and waits for no loop for long: each app is asked for a snapshot, which it makes on its own
loop; what an app has not made in time is shown as it was last, with its age.
"""

from __future__ import annotations

import logging
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from apps.exporters import controller_metrics
from apps.exporters.exposition import OPENMETRICS_TYPE, TEXT_TYPE, Labels, Metric, MetricFamily, Value, metric_texts
from apps.exporters.fault import OutputFault
from apps.exporters.http_server import HttpPage, HttpServer, Page
from apps.openflow.framework import NAME, Event

PATH = "/metrics"

ANSWER_S = 0.25
"""How long a scrape waits for the snapshots of all apps together."""

Stream = Callable[[bool], Iterator[str]]
"""Text of families that one app alone has, piece by piece; told whether it is to be OpenMetrics."""


class Source:
    """The figures of one app, as it last made them.

    `wake` has the app call `publish` on its own loop soon, without waiting, and returns whether it will; `collect`
    makes the figures there; `backlog` counts the events that wait for the loop.
    """

    def __init__(
        self,
        app: str,
        collect: Callable[[], Sequence[Metric]],
        wake: Callable[[], bool],
        backlog: Callable[[], int],
    ) -> None:
        self.app = app
        self.backlog = backlog
        self._collect = collect
        self._wake = wake
        self._awaited: Event | None = None
        self._metrics: tuple[Metric, ...] = ()
        self._made_s: float | None = None

    def publish(self) -> None:
        """Make the figures anew; on the app's own loop."""
        made = tuple(self._collect())
        self._metrics, self._made_s = made, time.monotonic()
        awaited, self._awaited = self._awaited, None
        if awaited is not None:
            awaited.set()

    def want(self) -> Event | None:
        """Ask for figures; what is returned is set when they are there, None where the loop takes no question."""
        awaited = self._awaited
        if awaited is None:
            awaited = self._awaited = Event()
            if not self._wake():
                self._awaited = None
                return None
        return awaited

    def read(self) -> tuple[tuple[Metric, ...], float | None]:
        """Return the last figures, and when they were made."""
        return self._metrics, self._made_s


class Endpoint:
    """What is served at one address; `sources` by app, `streams` beside them, and `pages` of their own."""

    def __init__(self, host: str, port: int, logger: logging.Logger) -> None:
        self.pages: dict[str, Page] = {PATH: self._page}
        self.server = HttpServer(host, port, self.pages, logger)
        self.fault = OutputFault(f"Prometheus endpoint at {host}, port {port}", logger)
        self.sources: dict[str, Source] = {}
        self.streams: dict[str, Stream] = {}
        self.scrapes = 0
        self.users = 0

    def start(self) -> None:
        """Listen; an address that is taken is told, and the controller goes on."""
        try:
            self.server.start()
        except (OSError, OverflowError) as error:
            remedy = "give this process another monitor.prometheus.port"
            self.fault.failed(OSError(f"{error}: Prometheus is served nothing; {remedy}"))

    def text(self, *, openmetrics: bool = False) -> Iterator[str]:
        """Yield what a scrape is answered, in pieces."""
        for family, samples in self._gathered():
            yield from metric_texts(family, samples, openmetrics=openmetrics)
        for stream in list(self.streams.values()):
            yield from stream(openmetrics)
        if openmetrics:
            yield "# EOF\n"

    def _page(self, accept: str) -> HttpPage:
        openmetrics = "application/openmetrics-text" in accept
        self.scrapes += 1
        pieces = (piece.encode() for piece in self.text(openmetrics=openmetrics))
        return HttpPage(OPENMETRICS_TYPE if openmetrics else TEXT_TYPE, pieces)

    def _gathered(self) -> list[Metric]:
        """Return the figures of all apps, the samples of one family together, in the order of the reference."""
        sources = list(self.sources.values())
        deadline_s = time.monotonic() + ANSWER_S
        for awaited in [source.want() for source in sources]:
            if awaited is not None:
                awaited.wait(max(0.0, deadline_s - time.monotonic()))
        found: dict[MetricFamily, list[tuple[Labels, Value]]] = {family: [] for family in controller_metrics.FAMILIES}
        found[controller_metrics.BUILD_INFO].append((_build(), 1))
        found[controller_metrics.PROCESS_START].append(({}, process_start_s()))
        now = time.monotonic()
        for source in sources:
            labels = {"app": source.app}
            metrics, made_s = source.read()
            found[controller_metrics.BACKLOG].append((labels, source.backlog()))
            if made_s is not None:
                found[controller_metrics.AGE].append((labels, round(now - made_s, 3)))
            for family, samples in metrics:
                found[family].extend(samples)
        return list(found.items())


_SHARED: dict[tuple[str, int], Endpoint] = {}


def open_endpoint(host: str, port: int, logger: logging.Logger) -> Endpoint:
    """Return the endpoint of this process at an address, which listens from now on; port 0 is one of its own."""
    endpoint = _SHARED.get((host, port))
    if endpoint is None:
        endpoint = Endpoint(host, port, logger)
        endpoint.start()
        if port:
            _SHARED[host, port] = endpoint
    endpoint.users += 1
    return endpoint


def close_endpoint(endpoint: Endpoint) -> None:
    """Use an endpoint no more; it ends with its last user."""
    endpoint.users -= 1
    if not endpoint.users:
        for address, shared in list(_SHARED.items()):
            if shared is endpoint:
                del _SHARED[address]
        endpoint.server.stop()


@lru_cache(maxsize=1)
def process_start_s() -> float:
    """Return when this process began, in seconds since 1970-01-01 UTC, as the kernel has it."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    up_s = float(Path("/proc/uptime").read_text().split()[0])
    return round(time.time() - up_s + ticks / os.sysconf("SC_CLK_TCK"), 2)


@lru_cache(maxsize=1)
def _build() -> dict[str, object]:
    try:
        ours = version("vsrt-controller")
    except PackageNotFoundError:
        ours = "unknown"
    return {"version": ours, "framework": NAME, "python": platform.python_version()}
