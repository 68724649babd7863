"""The end of a connection, told when it comes.

The framework tells it once the threads of the connection have ended. That which sends echo requests sleeps until the
next one is due; where threads are the system's, as under os-ken, nobody can wake it.
"""

from __future__ import annotations

from typing import Any


def use_prompt_ends(connection: Any, dead: str) -> None:
    """Have a framework's class of connections enter its state `dead` as soon as there is nothing more to read."""
    receive = connection._recv_loop

    def receive_to_the_end(self: Any) -> None:
        try:
            receive(self)
        finally:
            self.set_state(dead)

    connection._recv_loop = receive_to_the_end
