"""What makes a policy of a configuration, with what is said of its lines."""

from __future__ import annotations

import pytest

from imported_policy import Imported


@pytest.fixture
def imported():
    return Imported
