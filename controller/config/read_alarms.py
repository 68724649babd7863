"""The section `alarms`: its settings, and the address that alarms are posted to."""

from __future__ import annotations

import re

from controller.config.alarm_settings import Alarms
from controller.config.document import Node
from controller.config.faults import quoted
from controller.config.read import NodeReader, line_of

WEBHOOK_URL = re.compile(r"https?://[^\s/?#]+([/?][^\s#]*)?\Z")


def read_alarms(reader: NodeReader, node: Node, path: str) -> Alarms:
    """Return the settings of a mapping, with a fault for an address that cannot be posted to."""
    alarms = reader.settings(Alarms, node, path)
    url = alarms.webhook.url
    if url and not WEBHOOK_URL.match(url):
        message = f"{quoted(url)} is no https:// or http:// address"
        reader.faults.error(line_of(node, "webhook", "url"), f"{path}.webhook.url", message)
    return alarms
