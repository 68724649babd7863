"""Requests of a command to an OVSDB server, one after the other, each waited for (RFC 7047)."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Sequence
from typing import Any

from apps.ovsdb import TIMEOUT_S, OvsdbFault, address_of
from controller.queues.database_copy import DATABASE

ANSWER_BYTES = 64 << 20
TAKEN_S = 5.0
"""How long ovs-vswitchd is waited for to go by what its database says."""

_POLL_S = 0.05


class OvsdbRequests:
    """A connection to one server, ``unix:PATH`` or ``tcp:HOST:PORT``; ValueError for anything else.

    Every method raises OvsdbFault where the server cannot be reached, does not answer in time, or refuses.
    """

    def __init__(self, target: str) -> None:
        self.target = target
        self._family, self._address = address_of(target)
        self._connection: socket.socket | None = None
        self._number = 0

    def schema(self) -> dict[str, Any]:
        """Return the schema of the database."""
        return dict(self._ask("get_schema", [DATABASE]))

    def tables(self, *names: str) -> dict[str, list[dict[str, Any]]]:
        """Return all rows of tables, as of one moment."""
        asked = [{"op": "select", "table": name, "where": []} for name in names]
        return {name: result["rows"] for name, result in zip(names, self.transact(asked), strict=True)}

    def transact(self, operations: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Have operations done, all or none, and return their results; OvsdbFault says which was refused, and why."""
        results = self._ask("transact", [DATABASE, *operations])
        for position, result in enumerate(results):
            if isinstance(result, dict) and result.get("error"):
                details = f": {result['details']}" if result.get("details") else ""
                of = operations[position]["op"] if position < len(operations) else "the whole"
                raise OvsdbFault(f"{self.target}: {of} was refused: {result['error']}{details}")
        return list(results)

    def change(self, operations: Sequence[dict[str, Any]]) -> bool:
        """Have operations done, all or none; tell whether ovs-vswitchd went by them within `TAKEN_S`."""
        bump = {"op": "mutate", "table": "Open_vSwitch", "where": [], "mutations": [["next_cfg", "+=", 1]]}
        look = {"op": "select", "table": "Open_vSwitch", "where": [], "columns": ["next_cfg", "cur_cfg"]}
        wanted = self.transact([*operations, bump, look])[-1]["rows"][0]["next_cfg"]
        deadline = time.monotonic() + TAKEN_S
        while self.transact([look])[0]["rows"][0]["cur_cfg"] < wanted:
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)
        return True

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ask(self, method: str, parameters: list[Any]) -> Any:
        self._number += 1
        try:
            if self._connection is None:
                self._connection = socket.socket(self._family, socket.SOCK_STREAM)
                self._connection.settimeout(TIMEOUT_S)
                self._connection.connect(self._address)
            question = {"id": self._number, "method": method, "params": parameters}
            self._connection.sendall(json.dumps(question).encode())
            answer = self._answer(self._connection)
        except OSError as error:
            raise OvsdbFault(f"{self.target}: {error.strerror or error}") from error
        if answer.get("error") is not None:
            raise OvsdbFault(f"{self.target}: {answer['error']}")
        return answer["result"]

    def _answer(self, connection: socket.socket) -> dict[str, Any]:
        """Return the answer to the last question; the server's own echoes are answered meanwhile."""
        decoder, text, content = json.JSONDecoder(), "", b""
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline and len(content) < ANSWER_BYTES:
            more = connection.recv(1 << 20)
            if not more:
                raise OvsdbFault(f"{self.target}: the connection ended within an answer")
            content += more
            try:
                text = content.decode()
                message, end = decoder.raw_decode(text)
            except ValueError:
                continue  # its end is to come
            content = text[end:].lstrip().encode()
            if message.get("method") == "echo":
                echo = {"id": message["id"], "result": message["params"], "error": None}
                connection.sendall(json.dumps(echo).encode())
            elif message.get("id") == self._number:
                return dict(message)
        raise OvsdbFault(f"{self.target}: no answer within {TIMEOUT_S:g} s")
