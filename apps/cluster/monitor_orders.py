"""What operators want of monitors that share the switches: one gives its own to others, or takes its part again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from apps.actions import logged
from apps.cluster.store_reading import Ask, StoreSilent, read_below
from apps.openflow.framework import hub, run_aside
from apps.openflow.questions import Deferred
from apps.state_dir import ActionLog
from apps.status_server import ENGINE_UNCONFIRMED, ENGINE_UNREACHABLE, QuestionRefused, refusal
from controller.cluster.draining import DrainRefused, draining, undraining
from controller.cluster.engine import Committed, Transaction
from controller.cluster.keys import Keys
from controller.cluster.share_records import ShareView
from controller.snapshot.log import Document

TRIES = 5
"""How often monitors are looked at and the store is asked anew, where they change meanwhile or its answer is lost."""

Order = Callable[[Keys, ShareView, str], Transaction | None]


class MonitorOrders:
    """Has the store know what operators want of monitors.

    Parameters
    ----------
    ask
        Has the store answer; it is called on a thread.
    fabric
        Whose monitors these are.
    later
        Has work done on the app's loop.
    log
        Where actions are kept.
    """

    def __init__(self, ask: Ask, fabric: str, later: Callable[[Callable[[], None]], object], log: ActionLog) -> None:
        self._ask = ask
        self._keys = Keys(fabric)
        self._later = later
        self._log = log

    def actions(self) -> dict[str, Callable[[Mapping[str, Any]], Deferred]]:
        """Return what can be asked for on the status socket."""
        orders = {"drain-monitor": draining, "undrain-monitor": undraining}
        return {name: self._action(name, order) for name, order in orders.items()}

    def _action(self, name: str, order: Order) -> Callable[[Mapping[str, Any]], Deferred]:
        def act(fields: dict[str, Any], _by: str | None) -> Deferred:
            monitor = fields.get("monitor")
            if not isinstance(monitor, str) or not monitor:
                raise QuestionRefused("monitor: must be the name of a monitor", "monitor")
            answer = Deferred()
            hub.spawn(self._do, name, order, monitor, answer)
            return answer

        return lambda asked: logged(self._log, name, asked, act)

    def _do(self, name: str, order: Order, monitor: str, answer: Deferred) -> None:
        """Have it done, on a thread, and answer."""
        outcome: list[Document] = []
        run_aside(lambda: outcome.append(carry_out(self._ask, self._keys, order, monitor)))
        self._later(lambda: answer.settle(outcome[0]))


def carry_out(ask: Ask, keys: Keys, order: Order, monitor: str) -> Document:
    """Return what is answered to an order, when the store has it; this waits for the store."""
    unconfirmed = ""
    try:
        for _ in range(TRIES):
            view = ShareView(keys)
            view.replace(read_below(ask, keys.share)[1])
            transaction = order(keys, view, monitor)
            reply = None if transaction is None else ask(transaction)
            if reply is None or type(reply) is Committed:
                switches = sum(share.owner == monitor for share in view.shares().values())
                changed = reply is not None or bool(unconfirmed)
                return {"monitor": monitor, "switches": switches, "changed": changed}
            unconfirmed = getattr(reply, "why", unconfirmed)
    except DrainRefused as refused:
        return refusal(QuestionRefused(str(refused), "monitor"))
    except StoreSilent as silent:
        if not unconfirmed:
            text = f"The monitors' store does not answer, nothing was done: {silent}"
            return refusal(QuestionRefused(text, reason=ENGINE_UNREACHABLE))
    if unconfirmed:
        text = f"The monitors' store has not confirmed it, and nobody knows whether it was done: {unconfirmed}"
        return refusal(QuestionRefused(text, reason=ENGINE_UNCONFIRMED))
    return refusal(QuestionRefused("Monitors come and go: nothing was done. Ask again.", "monitor"))
