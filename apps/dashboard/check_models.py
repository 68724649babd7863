"""What checks of flow tables answer, as documents of the API."""

from __future__ import annotations

from typing import Any

from apps.dashboard.model_parts import Described


class FindingsModel(Described):
    """What does not fit together, apart from flow entries."""

    done: bool
    count: int
    findings: list[Any]


class CheckReportModel(Described):
    """What a check of flow tables has found so far."""

    number: int
    switches: int
    done: bool
    reports: list[Any]
