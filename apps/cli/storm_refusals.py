"""Which of a storm's joins the controller refuses, and by what of its policy, as it tells at its Unix socket."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from apps.cli.snapshot_socket import SocketSource
from apps.storm.player import AskedJoin
from controller.config.verdict_lines import verdict_line
from controller.snapshot.reader import Snapshot


class JoinsRefused(NamedTuple):
    """So many joins that were refused by one rule, or setting, of a policy; `line` is None where no line says so."""

    rule: str
    reason: str
    joins: int
    policy: str | None
    line: int | None

    @property
    def text(self) -> str:
        """The sentence for the operator."""
        joins = "1 join" if self.joins == 1 else f"{self.joins:,} joins"
        file = self.policy or "there is no policy file"
        place = file if self.policy is None or self.line is None else f"{file}, line {self.line}"
        return f"the policy refused {joins} by {self.rule!r} ({place}): {self.reason}"


def refusals(path: Path, asked: Iterable[AskedJoin]) -> list[JoinsRefused]:
    """Return what the controller at a socket refuses of these joins, the most frequent first.

    OperationFailed where it does not answer.
    """
    snapshot = next(SocketSource(path).follow(("groups",), ("policy",)))
    wanted = set(asked)
    found = Counter(
        (member["rule"], member["reason"])
        for group in snapshot.section("groups").in_order()
        for member in group.fields.get("refused") or ()
        if AskedJoin(member["dpid"], member["port_no"], member["mac"], group.id) in wanted
    )
    file, text = _policy(snapshot)
    return [
        JoinsRefused(rule, reason, joins, file, verdict_line(text, rule))
        for (rule, reason), joins in sorted(found.items(), key=lambda each: (-each[1], each[0]))
    ]


def _policy(snapshot: Snapshot) -> tuple[str | None, str]:
    fields: list[dict[str, Any]] = [each.fields for each in snapshot.section("policy").in_order()]
    return (fields[0].get("path"), fields[0].get("text") or "") if fields else (None, "")
