"""Error messages of switches, which are no failures of ours.

The framework's own handler does no more than log them, but fails at each one of OpenFlow 1.0, whose names it does not
know. Apps get errors as they get all other messages.
"""

from __future__ import annotations

from functools import wraps
from typing import Any


def use_harmless_errors(handler: Any) -> None:
    """Have a framework's class that handles messages log errors of whatever version, and leave them to the apps."""

    @wraps(handler.error_msg_handler)
    def error_msg_handler(self: Any, event: Any) -> None:
        message = event.msg
        text = "Switch %s answered message %#x with OpenFlow error %d/%d."
        self.logger.debug(text, message.datapath.id, message.xid, message.type, message.code)

    handler.error_msg_handler = error_msg_handler
