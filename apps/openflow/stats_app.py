"""What apps share that ask switches for statistics: requests of their cores, and the replies to these."""

from __future__ import annotations

from typing import Any

from apps.openflow.app import App
from controller.performance.requests import RequestStats, StatsReceived


class StatsApp(App):
    """Sends what its core asks switches for, and hands it the replies; `core.xid_tag` marks what is its own.

    Which kinds of replies it takes is the app's: it hands each to `take_stats`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._perform[RequestStats] = self._request_stats

    def _request_stats(self, effect: RequestStats) -> None:
        datapath = self._datapaths.get(effect.dpid)
        if datapath is not None:
            datapath.send(effect.message)

    def take_stats(self, message: Any) -> None:
        """Hand the core a reply, if it is to a request of its own."""
        if message.xid >> 24 == self.core.xid_tag:
            datapath = message.datapath
            version = datapath.ofproto.OFP_VERSION
            self.feed(StatsReceived(datapath.id, version, message.xid, bytes(message.buf), message.received_s))
