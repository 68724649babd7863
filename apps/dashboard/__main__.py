"""The server as a child of the controller: settings come as a line of JSON, and the end of input is its own end.

Its address goes to standard output once it answers.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading

from apps.dashboard.server import serve
from apps.dashboard.settings import ServerSettings
from apps.tls_files import SettingsInvalid

NICENESS = 5
"""The controller, which answers switches, goes before it."""


def main() -> int:
    """Serve until standard input ends."""
    settings = ServerSettings(**json.loads(sys.stdin.readline()))
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    os.nice(NICENESS)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        serve(settings, _ready)
    except SettingsInvalid as error:
        logging.getLogger("vsrt.dashboard").error("%s", error)
        return 2
    return 0


def _ready(url: str) -> None:
    logging.getLogger("vsrt.dashboard").info("serving %s", url)
    print(url, flush=True)


def _end_with_parent() -> None:
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
