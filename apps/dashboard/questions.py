"""Questions to the controller on behalf of who asked the API, and what its answers are to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Depends, Request

from apps.dashboard.answers import Problem, encode
from apps.dashboard.feed import ControllerUnanswered

Ask = Callable[[dict[str, Any]], Any]

QUESTION_BYTES = 65_000
"""The longest question that the controller's socket takes."""

SCRIPT_FAULT = "script-fault"
"""The reason of a refusal that holds whenever it is asked again; others say that it cannot be done at present."""


def _caller(request: Request) -> str:
    """Return on whose behalf the controller is asked, for its log of actions: the name that the token has."""
    return str(request.state.caller)


By = Annotated[str, Depends(_caller)]


def check_length(question: dict[str, Any]) -> None:
    """Raise Problem where a question is longer than the controller takes, or cannot be put."""
    try:
        length = len(encode(question))
    except ValueError:
        raise Problem(422, "the request holds a number that JSON has not") from None
    if length > QUESTION_BYTES:
        raise Problem(413, f"the request is longer than {QUESTION_BYTES} bytes")


async def answered(ask: Ask, question: dict[str, Any]) -> Any:
    """Return the controller's answer; Problem where it refuses, fails or is away."""
    try:
        answer = await ask(question)
    except ControllerUnanswered as error:
        raise Problem(503, f"the controller does not answer: {error}", reason="disconnected") from error
    if isinstance(answer, dict) and isinstance(answer.get("error"), dict):
        raise Problem(409, "there are too few ports", error=answer["error"])
    if isinstance(answer, dict) and isinstance(answer.get("error"), str):
        if answer.get("refused"):
            field, reason = answer.get("field"), answer.get("reason")
            if isinstance(reason, str) and reason != SCRIPT_FAULT:
                raise Problem(503, answer["error"], reason=reason)
            raise Problem(409, answer["error"], **({"field": field} if isinstance(field, str) else {}))
        if answer["error"].startswith("ask with"):
            raise Problem(501, "no app of this controller does that")
        if "unanswered" in answer:
            raise Problem(504 if answer["unanswered"] == "under-way" else 503, answer["error"], reason="busy")
        raise Problem(502, answer["error"])
    return answer
