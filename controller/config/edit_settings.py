"""Settings of how flow entries are sent to switches."""

from __future__ import annotations

from dataclasses import dataclass

from controller.config.declarations import SettingType, integer, number, other

WINDOW_POLICIES = ("line", "aimd", "fixed")


@dataclass(frozen=True, slots=True)
class Edits:
    """How many edits of flow entries a switch is sent before it has to confirm them."""

    window: str = other(
        SettingType.CHOICE,
        "line",
        "How the number is found: from the delay and rate of the switch, by additive increase and multiplicative "
        "decrease, or always the most.",
        WINDOW_POLICIES,
    )
    delay_s: float = number(0.25, 0.001, 2, "s", "Time in which a switch is to have done them.")
    at_once: int = integer(512, 1, 65536, "edits", "Edits at once at most; always as many where `window` is `fixed`.")
