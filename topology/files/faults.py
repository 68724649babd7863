"""What can be wrong with a topology file, and how large one may be."""

from __future__ import annotations

MAX_BYTES = 64 * 2**20
MAX_NODES = 200_000
MAX_LINKS = 1_000_000
MAX_NAME_CHARACTERS = 200


class TopologyFileError(ValueError):
    """A topology file that cannot be read; the text names the file, the line and the field as far as they are known.

    Attributes
    ----------
    source
        The file, as its reader calls it.
    message
        What is wrong.
    line
        Line number from 1, None where the format has none.
    field
        Place inside the document, such as ``links[3].capacity_bps``, or name of an attribute; empty where unknown.
    """

    def __init__(self, source: str, message: str, line: int | None = None, field: str = "") -> None:
        self.source = source
        self.message = message
        self.line = line
        self.field = field
        place = source if line is None else f"{source}:{line}"
        super().__init__(f"{place}: {field}: {message}" if field else f"{place}: {message}")
