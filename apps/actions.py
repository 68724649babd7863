"""Actions of operators as apps do them: logged, and refused in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from apps.state_dir import ActionLog
from apps.status_server import QuestionRefused
from controller.effects import ActionRefused, ActionTaken
from controller.snapshot.log import Document

Answer = TypeVar("Answer")

BY_LENGTH = 100
"""How much of the name of who asked is kept."""


def logged(
    log: ActionLog, name: str, asked: Mapping[str, Any], act: Callable[[dict[str, Any], str | None], Answer]
) -> Answer:
    """Have an action done by `act`, which is given its fields and who asks, and return the answer.

    `by` of what is asked says on whose behalf. Done or refused, the action is in the log.
    """
    fields = {field: value for field, value in asked.items() if field != "by"}
    by = str(asked["by"])[:BY_LENGTH] if "by" in asked else None
    try:
        answer = act(fields, by)
    except QuestionRefused as refusal:
        log.add(name, fields, by, str(refusal))
        raise
    log.add(name, fields, by, None)
    return answer


def answer_of(outcome: ActionTaken | ActionRefused) -> Document:
    """Return what a core answers to an action; QuestionRefused where it does not do it."""
    if isinstance(outcome, ActionRefused):
        raise QuestionRefused(outcome.text, outcome.field)
    return outcome.document
