"""What an app has switches do beside holding its flow entries."""

from __future__ import annotations

from collections import Counter

from controller.config.edit_settings import Edits
from controller.effects import ApplyEdits, Effect, Put, RequestFlows, RequestTables
from controller.events import SurveyOrder
from controller.rules.check import Checks
from controller.rules.inspection import Inspection
from controller.rules.model import FlowEntry
from controller.rules.reading import Withholds
from controller.rules.survey import Surveys


class Errands(Inspection):
    """Messages of an `Installer`, which is one, that leave what is desired as it is.

    Attributes
    ----------
    withholds
        Tells which of the keys of entries that a switch was found to lack, or to have otherwise, when it was read are
        not sent before they are desired anew; none where it is None.
    """

    withholds: Withholds | None
    app_tag: int
    xid_tag: int
    counters: Counter[str]
    _checks: Checks
    _surveys: Surveys

    def _flush(self, now: float) -> list[Effect]:
        raise NotImplementedError

    def check_every(self, interval_s: float) -> None:
        """Read every connected switch once in so many seconds, and repair what is not as confirmed; 0: never."""
        self._checks.interval_s = interval_s

    def use_edits(self, settings: Edits) -> None:
        """Send as many edits at once as the operator wants from here on."""
        self._datapath.use(settings)

    def use_policy(self, check_interval_s: float, edits: Edits) -> None:
        """Go by other settings of the operator's from here on."""
        self.check_every(check_interval_s)
        self.use_edits(edits)

    def check_requested(self, dpid: int, now: float, order: SurveyOrder | None = None) -> list[Effect]:
        """Check a switch at once, of which another app found that it lost entries, or report on it as ordered."""
        if order is not None:
            self._surveys.begin(dpid, self._switches.get(dpid), order, now)
        else:
            self._checks.request(dpid, now)
            self._checks.on_deadline(now)
        return self._flush(now)

    def table_suspected(self, dpid: int, now: float) -> list[Effect]:
        """Check a switch soon that shows signs of lost entries; `EntriesLost` says what it finds missing."""
        self._checks.suspect(dpid, now)
        self._checks.on_deadline(now)
        return self._flush(now)

    def transient(self, dpid: int, rule: FlowEntry) -> list[ApplyEdits]:
        """Put a rule that ends by itself, and forget it; nothing where the switch is not there.

        ValueError where the rule has no timeout or another app's tag.
        """
        if not (rule.idle_timeout_s or rule.hard_timeout_s) or rule.cookie >> 48 != self.app_tag:
            raise ValueError(f"{rule} has no timeout or another app's tag")
        state = self._switches.get(dpid)
        if state is None or not state.connected or state.lowering is None or state.lowering.expressible(rule):
            self.counters["transient-unsent"] += 1
            return []
        return [ApplyEdits(dpid, self._xids.take(2), (Put(rule),))]

    def barrier(self, dpid: int) -> ApplyEdits:
        """Have a switch reply, for the caller's own use, when it has done all it was sent; see `first_xid`."""
        return ApplyEdits(dpid, self._xids.take(1), ())

    def read_flows(self, dpid: int, cookie: int, cookie_mask: int) -> RequestFlows | None:
        """Ask a switch for entries and counters, for the caller's own use; None where it is not there."""
        state = self._switches.get(dpid)
        if state is None or not state.connected:
            return None
        return RequestFlows(dpid, self._xids.take(1), cookie, cookie_mask)

    def read_tables(self, dpid: int) -> RequestTables | None:
        """Ask a switch what its tables have room for, for the caller's own use; None where it is not there."""
        state = self._switches.get(dpid)
        return None if state is None or not state.connected else RequestTables(dpid, self._xids.take(1))

    def owns_xid(self, xid: int) -> bool:
        """Tell whether a transaction id is one of this app's."""
        return xid >> 24 == self.xid_tag
