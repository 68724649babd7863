"""What is answered to an operator: a document of what was done, or what was refused and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from controller.effects import ActionRefused, ActionTaken
from controller.multicast.callbacks import Perform
from controller.snapshot.names import Names


class SettingRefused(Exception):  # noqa: N818
    """What an operator asks for cannot be; `field` is at fault, the text says why."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(f"{field}: {text}")
        self.field = field


def answer_operator(names: Names, perform: Perform, act: Callable[[], dict[str, Any]]) -> None:
    """Do what an operator asks, and answer with its document, or with why it is refused."""
    try:
        document = act()
    except SettingRefused as refusal:
        perform([ActionRefused(refusal.field, names.spoken(str(refusal)))])
    else:
        perform([ActionTaken(document)])
