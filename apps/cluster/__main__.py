"""The process beside a controller, which starts it with two descriptors: the pipe, and where others hear it.

Its settings are the first message of the pipe; it ends when that does.
"""

from __future__ import annotations

import logging
import signal
import socket
import sys

from apps.cluster.messages import receive
from apps.cluster.sidecar import Sidecar
from apps.cluster.sidecar_settings import SidecarSettings, access
from apps.tls_files import SettingsInvalid


def main() -> int:
    """Run until the controller has gone; signals are for the controller, which ends this process by the pipe."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    pipe_fd, listening_fd = map(int, sys.argv[1:])
    pipe = socket.socket(fileno=pipe_fd)
    listening = None if listening_fd < 0 else socket.socket(fileno=listening_fd)
    try:
        settings: SidecarSettings = receive(pipe)
        Sidecar(settings.member, access(settings), pipe, listening).run()
    except EOFError:
        return 0
    except SettingsInvalid as error:
        logging.getLogger("vsrt.cluster").error("%s", error)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
