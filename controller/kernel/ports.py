"""How a port of a switch is named."""

from __future__ import annotations

from typing import TypeAlias

End: TypeAlias = tuple[int, int]
"""A port of a switch, as one end of a cable: datapath id and port number."""
