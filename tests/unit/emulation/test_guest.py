"""A guest that cannot run says why, and leaves everything as it was."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from apps.emulation import guest_image
from apps.emulation.agents import Dialogue, DialogueEndedError
from apps.emulation.guest import KernelGuest
from apps.emulation.processes import EmulationError


def test_a_guest_without_a_kernel_says_so_and_touches_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "kept").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(guest_image, "KERNEL_DIRECTORY", tmp_path / "kernels")
    why = guest_image.hindrance()
    with pytest.raises(EmulationError) as raised, KernelGuest(["t0"]):
        pass
    assert why is not None and str(raised.value) == why
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_tool_that_has_ended_is_told_as_such():
    requests, replies = os.pipe(), os.pipe()
    os.close(replies[1])
    dialogue = Dialogue("receiver", requests[1], replies[0])
    with pytest.raises(DialogueEndedError, match="receiver has ended"):
        dialogue.ask("report")
    os.close(requests[0])
    with pytest.raises(DialogueEndedError, match="receiver has ended"):
        dialogue.ask("report")
    os.close(requests[1])
    os.close(replies[0])
