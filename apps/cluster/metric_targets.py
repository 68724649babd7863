"""The list of those whose metrics Prometheus is to scrape, as its discovery by HTTP (`http_sd_configs`) reads it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from http import HTTPStatus

from apps.cluster.store_reading import Ask, StoreSilent, read_below
from apps.exporters.http_server import HttpPage
from apps.openflow.framework import run_aside
from controller.cluster.engine import KeyValue
from controller.cluster.keys import Keys, read_present
from controller.cluster.share_records import read_monitor

PATH = "/http_sd"
MEDIA_TYPE = "application/json"


class MetricTargets:
    """Controllers and monitors of a fabric that say where their metrics are, as the store has them.

    `ask` has the store answer; it is called on a thread. While the store gives no answer the list is as it was. Where
    it was never read there is none: Prometheus then keeps the targets that it has, which an empty list would take.
    """

    def __init__(self, ask: Ask, fabric: str) -> None:
        self._ask = ask
        self._fabric = fabric
        self._known: bytes | None = None
        self._why = ""

    def page(self, _accept: str) -> HttpPage:
        """Return what is answered; on a thread that `hub.spawn` made."""
        run_aside(self._read)
        if self._known is None:
            text = f"The cluster's store was not read yet: {self._why}\n"
            return HttpPage("text/plain; charset=utf-8", iter([text.encode()]), HTTPStatus.SERVICE_UNAVAILABLE)
        return HttpPage(MEDIA_TYPE, iter([self._known]))

    def _read(self) -> None:
        keys = Keys(self._fabric)
        try:
            members = read_below(self._ask, keys.members)[1]
            monitors = read_below(self._ask, keys.monitors)[1]
        except StoreSilent as silent:
            self._why = str(silent)
            return
        controllers = {_name(each, keys.members): read_present(each.value) for each in members}
        polling = {_name(each, keys.monitors): read_monitor(each.value) for each in monitors}
        found = [
            *self._targets("controller", {name: each.metrics for name, each in controllers.items() if each}),
            *self._targets("monitor", {name: each.metrics for name, each in polling.items() if each}),
        ]
        self._known = json.dumps(found).encode()

    def _targets(self, role: str, metrics: Mapping[str, str]) -> Iterable[dict[str, object]]:
        for name, address in sorted(metrics.items()):
            if address:
                labels = {"fabric": self._fabric, "role": role, "member": name}
                yield {
                    "targets": [address],
                    "labels": {f"__meta_vsrt_{label}": value for label, value in labels.items()},
                }


def _name(held: KeyValue, prefix: str) -> str:
    return held.key.removeprefix(prefix)
