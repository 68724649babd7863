"""How the policy, a staged one and those that were found become rows of tables."""

from __future__ import annotations

from collections.abc import Iterator

from apps.cli.called import SnapshotNames
from apps.cli.show_cells import Fields, Row, place, text

CANDIDATE_PLACES = 3
"""Resources that are named of a policy that was found."""


def staged_rows(decision: Fields, called: SnapshotNames) -> Iterator[Row]:
    """Yield the row of a decision that a staged policy would make otherwise, or what is wrong with that policy."""
    errors = decision.get("errors") or ()
    if decision.get("would_be") != "alike" or decision.get("loaded_s") is not None:
        where = place(decision, called) if decision.get("dpid") is not None else "-"
        asked = (text(decision.get(name)) for name in ("would_be", "role", "group", "source"))
        who = (text(decision.get("mac")), text(decision.get("ip")))
        rules = (text(decision.get("rule")), text(decision.get("staged_rule")), text(decision.get("count")))
        yield *asked, where, *who, *rules
    elif not errors:
        yield "no file", text(decision.get("path"))
    yield from (("fault", fault) for fault in errors)


def candidate_rows(candidate: Fields, called: SnapshotNames) -> Iterator[Row]:
    """Yield the row of a policy that was found, or what is wrong with the search."""
    if candidate.get("state") == "search":
        if fault := candidate.get("fault"):
            yield "fault", fault
        if candidate.get("searched_s") is None:
            yield "no search yet", text(candidate.get("path"))
        return
    where = candidate.get("told_by") or candidate.get("resources") or ()
    shown, count = ", ".join(where[:CANDIDATE_PLACES]), candidate.get("resource_count") or 0
    more = "" if candidate.get("told_by") or count <= CANDIDATE_PLACES else f" and {count - CANDIDATE_PLACES} more"
    numbers = (text(candidate.get(name)) for name in ("resource_count", "deviation_count", "near_count"))
    properties = ", ".join(candidate.get("properties") or ())
    yield candidate["id"], candidate.get("state"), properties, shown + more, *numbers


def policy_rows(policy: Fields, called: SnapshotNames) -> Iterator[Row]:
    """Yield the lines of the policy file, after where it is and what is wrong with it."""
    yield "file", text(policy.get("path"))
    yield "read", called.clock(policy.get("loaded_s"))
    yield from (("fault", fault) for fault in policy.get("errors") or ())
    yield from enumerate((policy.get("text") or "").splitlines(), 1)
