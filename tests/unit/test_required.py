"""What a machine lacks: tests without it are left out, and fail where nothing may be."""

from __future__ import annotations

import pytest

from required import REQUIRED, leave_out


def test_a_test_is_left_out_where_nobody_insists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(REQUIRED, raising=False)
    with pytest.raises(pytest.skip.Exception, match="needs a guest"):
        leave_out("needs a guest")


def test_a_test_fails_where_nothing_may_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(REQUIRED, "1")
    with pytest.raises(pytest.fail.Exception, match="needs a guest"):
        leave_out("needs a guest")
