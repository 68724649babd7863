"""SteinLib problems (.stp), of which the graph and the terminals are read (http://steinlib.zib.de/format.php)."""

from __future__ import annotations

import math

from topology.files.assembly import Assembly, RecordPosition
from topology.files.faults import MAX_LINKS, MAX_NODES
from topology.graph import NodeId

MAGIC = "33d32945"


def read(text: str, assembly: Assembly) -> tuple[NodeId, ...]:
    """Add nodes 1 to n and the weighted edges, and return the terminals in the order of the file.

    Arcs of directed problems are refused; sections other than Graph and Terminals are left out.
    """
    problem = _Problem(assembly)
    lines = text.split("\n")
    if not lines[0].strip().lower().startswith(MAGIC):
        raise assembly.fault(f"an .stp file begins with {MAGIC.upper()}", RecordPosition(1))
    for number, line in enumerate(lines[1:], 2):
        words = line.split("#")[0].split()
        if words and problem.take(words, RecordPosition(number)):
            return problem.finish(RecordPosition(number))
    raise assembly.fault("truncated: there is no EOF", RecordPosition(len(lines)))


class _Problem:
    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._section = ""
        self._seen: set[str] = set()
        self._nodes = 0
        self._declared: dict[str, tuple[int, RecordPosition]] = {}
        self._counts = {"edges": 0, "terminals": 0}
        self._terminals: dict[NodeId, None] = {}

    def take(self, words: list[str], place: RecordPosition) -> bool:
        """Take in one line and tell whether it is the last."""
        word = words[0].lower()
        if word == "section":
            self._open(words, place)
        elif word == "end":
            if not self._section:
                raise self._assembly.fault("END outside a section", place)
            self._section = ""
        elif not self._section:
            if word != "eof":
                raise self._assembly.fault(f"{words[0][:40]!r} outside a section", place)
            return True
        elif word == "eof":
            raise self._assembly.fault(f"section {self._section} is not ended", place)
        elif self._section == "graph":
            self._graph(word, words, place)
        elif self._section == "terminals":
            self._terminal(word, words, place)
        return False

    def _open(self, words: list[str], place: RecordPosition) -> None:
        if self._section:
            raise self._assembly.fault(f"section {self._section} is not ended", place)
        self._section = words[1].lower() if len(words) > 1 else ""
        if not self._section:
            raise self._assembly.fault("a section needs a name", place)
        if self._section in self._seen and self._section in ("graph", "terminals"):
            raise self._assembly.fault(f"second section {self._section}", place)
        self._seen.add(self._section)

    def _graph(self, word: str, words: list[str], place: RecordPosition) -> None:
        if word == "nodes":
            if self._nodes:
                raise self._assembly.fault("stands twice", place, "Nodes")
            self._nodes = self._whole(words, 1, 1, MAX_NODES, place, "Nodes")
            for node in range(1, self._nodes + 1):
                self._assembly.node(node, {}, place)
        elif word == "edges":
            self._declared["edges"] = (self._whole(words, 1, 0, MAX_LINKS, place, "Edges"), place)
        elif word in ("arcs", "a"):
            raise self._assembly.fault("directed problems are not read", place, words[0])
        elif word == "e":
            u, v = (self._node(words, position, place) for position in (1, 2))
            self._assembly.link(u, v, {"weight": self._weight(words, place)}, place)
            self._counts["edges"] += 1

    def _terminal(self, word: str, words: list[str], place: RecordPosition) -> None:
        if word == "terminals":
            self._declared["terminals"] = (self._whole(words, 1, 0, MAX_NODES, place, "Terminals"), place)
        elif word == "t":
            node = self._node(words, 1, place)
            if node in self._terminals:
                raise self._assembly.fault(f"node {node} is a terminal already", place, "T")
            self._terminals[node] = None
            self._counts["terminals"] += 1

    def _node(self, words: list[str], position: int, place: RecordPosition) -> int:
        if not self._nodes:
            raise self._assembly.fault("the number of nodes is not given before", place, words[0])
        return self._whole(words, position, 1, self._nodes, place, words[0])

    def _whole(
        self, words: list[str], position: int, lower: int, upper: int, place: RecordPosition, field: str
    ) -> int:
        text = words[position] if len(words) > position else ""
        if not (text.isascii() and text.isdecimal() and len(text) < 19 and lower <= int(text) <= upper):
            raise self._assembly.fault(f"{text[:40]!r} is not a whole number from {lower} to {upper}", place, field)
        return int(text)

    def _weight(self, words: list[str], place: RecordPosition) -> float:
        text = words[3] if len(words) > 3 else ""
        try:
            weight = float(text)
        except ValueError:
            weight = math.nan
        if math.isnan(weight):
            raise self._assembly.fault(f"weight {text[:40]!r} is no number", place, "E")
        return weight

    def finish(self, place: RecordPosition) -> tuple[NodeId, ...]:
        """Compare what was found with what was announced, and return the terminals."""
        if not self._nodes:
            raise self._assembly.fault("there is no section Graph with its Nodes", place)
        for what, (announced, where) in self._declared.items():
            if announced != self._counts[what]:
                raise self._assembly.fault(
                    f"{announced} are announced, {self._counts[what]} are there", where, what.capitalize()
                )
        return tuple(self._terminals)
