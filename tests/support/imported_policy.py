"""Configurations of other programs, and what is said of their lines when a policy is made of them."""

from __future__ import annotations

from pathlib import Path

from controller.config import load_policy
from controller.migration.draft import PolicyDraft, text_of
from controller.migration.report import ImportReport, InputFile, LineReport

CONFIGURATIONS = Path(__file__).parents[1] / "unit" / "migration" / "configurations"


def file_of(name: str) -> InputFile:
    """Return one of the configurations."""
    return InputFile(name, (CONFIGURATIONS / name).read_text(encoding="utf-8"))


class Imported:
    """A policy that was made, and what is said of each line of its sources."""

    def __init__(self, made: tuple[PolicyDraft, ImportReport]) -> None:
        draft, self.report = made
        self.text = text_of(draft, ["made by a test"])
        self.policy = load_policy(self.text)
        self.lines = self.report.lines()

    def line(self, text: str, file: str = "") -> LineReport:
        """Return what is said of the only line that, but for spaces at its ends, is this."""
        (found,) = [line for line in self.lines if line.text.strip() == text and file in line.file]
        return found

    def word(self, text: str, file: str = "") -> str:
        """Return what became of a line."""
        return self.line(text, file).outcome.word

    def said(self, text: str, file: str = "") -> str:
        """Return all that is said of a line."""
        return "; ".join(f"{part.field} {part.what} {part.todo}".strip() for part in self.line(text, file).parts)
