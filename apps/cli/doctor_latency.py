"""What `vsrt doctor` says of settings that cost latency: which, what they cost, and the cure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from controller.config.document import Node, parse
from controller.config.faults import Faults
from controller.config.overcommit_settings import COVER, SWAP
from controller.config.policy import Policy
from controller.config.read import NodeReader, line_of

DEFAULTS = Policy()


class CostlySetting(NamedTuple):
    """A setting that costs latency, with its line in the policy file, None where it is not in there."""

    field: str
    line: int | None
    cost: str
    cure: str


class _Settings:
    """The settings of a policy in force, by what stands in its file, else as they are by default."""

    def __init__(self, text: str) -> None:
        faults = Faults()
        self._root: Node | None = parse(text, faults)
        plain = None if self._root is None else NodeReader(faults).plain(self._root, "")
        self._plain: Mapping[str, Any] = plain if isinstance(plain, dict) and not faults.any_error else {}

    def value(self, field: str) -> Any:
        """Return a setting, such as ``edits.window``."""
        found: Any = self._plain
        default: Any = DEFAULTS
        for name in field.split("."):
            found = found.get(name) if isinstance(found, Mapping) else None
            default = getattr(default, name)
        return default if found is None else found

    def line(self, field: str) -> int | None:
        """Return the line on which it is set, None where it is not."""
        found: Any = self._plain
        for name in field.split("."):
            found = found.get(name) if isinstance(found, Mapping) else None
        return None if found is None or self._root is None else line_of(self._root, *field.split("."))


def costly_settings(text: str) -> Iterator[CostlySetting]:
    """Yield the settings of a policy's text that cost latency; a text that is no policy has none."""
    settings = _Settings(text)
    for field, costs in _COSTS:
        found = costs(settings)
        if found is not None:
            yield CostlySetting(field, settings.line(field), *found)


def _window(settings: _Settings) -> tuple[str, str] | None:
    if settings.value("edits.window") != "fixed":
        return None
    cost = f"a join at a switch that is programmed anew waits for up to {settings.value('edits.at_once'):,} edits"
    return cost, "`window: line` finds how many the switch takes at once, and sends what hosts wait for first"


def _delay(settings: _Settings) -> tuple[str, str] | None:
    delay_s, usual_s = settings.value("edits.delay_s"), DEFAULTS.edits.delay_s
    if settings.value("edits.window") == "fixed" or delay_s <= usual_s:
        return None
    return f"a join may wait {delay_s:g} s for what a slow switch does before it", f"`delay_s: {usual_s:g}` or less"


def _discovery(settings: _Settings) -> tuple[str, str] | None:
    interval_s, usual_s = settings.value("discovery.lldp_interval_s"), DEFAULTS.discovery.lldp_interval_s
    if interval_s <= usual_s:
        return None
    cost = f"a link that dies without its carrier going down is used for {interval_s:g} s and more before a repair"
    return cost, f"`lldp_interval_s: {usual_s:g}` or less; `frames_per_s` bounds what it costs"


def _leaves(settings: _Settings) -> tuple[str, str] | None:
    count = settings.value("multicast.querier.last_member_count") or settings.value("multicast.querier.robustness")
    lasts_s = count * settings.value("multicast.querier.last_member_interval_s")
    querier = DEFAULTS.multicast.querier
    if (
        settings.value("multicast.fast_leave") is True
        or lasts_s <= querier.robustness * querier.last_member_interval_s
    ):
        return None
    cost = f"a port is sent a group for {lasts_s:g} s after its last member has left"
    return cost, "a shorter interval, or `multicast.fast_leave` for ports with one host each"


def _reports(settings: _Settings) -> tuple[str, str] | None:
    per_second, groups = (
        settings.value("limits.reports_per_second_per_port"),
        settings.value("limits.groups_per_port"),
    )
    if per_second >= groups:
        return None
    cost = (
        f"a port may be in {groups:,} groups and say {per_second:g} reports in a second: of hosts that begin all at "
        "once the rest are dropped unread, and served when they report again, up to a query interval later"
    )
    return cost, f"`reports_per_second_per_port: {groups}`, or fewer groups per port"


def _overcommit(settings: _Settings) -> tuple[str, str] | None:
    if settings.value("overcommit.mode") not in (SWAP, COVER):
        return None
    cost = "the first packets of a group that went out of a full flow table wait for the controller"
    return cost, "`vsrt do pin GROUP` for those that must not wait; `vsrt show tables` tells how short tables are"


def _lease(settings: _Settings) -> tuple[str, str] | None:
    lease_s, usual_s = settings.value("cluster.lease_s"), DEFAULTS.cluster.lease_s
    if settings.value("cluster.engine") == "none" or lease_s <= usual_s:
        return None
    return (
        f"after a controller dies joins wait up to {lease_s:g} s for the next one",
        f"`lease_s: {usual_s:g}` or less",
    )


_COSTS: tuple[tuple[str, Callable[[_Settings], tuple[str, str] | None]], ...] = (
    ("edits.window", _window),
    ("edits.delay_s", _delay),
    ("limits.reports_per_second_per_port", _reports),
    ("overcommit.mode", _overcommit),
    ("multicast.querier.last_member_interval_s", _leaves),
    ("discovery.lldp_interval_s", _discovery),
    ("cluster.lease_s", _lease),
)
"""Settings, and what tells what one costs and the cure, None where it costs nothing."""
