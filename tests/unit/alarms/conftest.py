from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from alarm_receiver import Receiver


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.held.set()
    server.shutdown()
    server.server_close()
