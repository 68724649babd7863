"""GraphML (http://graphml.graphdrawing.org), the part of it that fabrics and networkx use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from xml.parsers import expat

from topology.files.assembly import Assembly, RecordPosition
from topology.files.faults import TopologyFileError
from topology.files.node_link import NODE_ATTRIBUTES
from topology.graph import Graph

NAMESPACE = "http://graphml.graphdrawing.org/xmlns"
MAX_TEXT_CHARACTERS = 10_000
"""Characters of one value that are kept; longer ones belong to attributes that are not read."""

NODE_TYPES = {"kind": "string", "level": "int", "pod": "string", "dpid": "long", "ip": "string", "mac": "string"}
LINK_TYPES = {"capacity_bps": "double", "weight": "double", "source_port": "long", "target_port": "long"}
READ_ATTRIBUTES = {"kind", *NODE_ATTRIBUTES, *LINK_TYPES}
_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}
)

READERS: dict[str, Callable[[str], Any]] = {
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "string": str,
    "boolean": {"true": True, "1": True, "false": False, "0": False}.__getitem__,
}


def write(graph: Graph) -> str:
    """Return the fabric as GraphML; all ids become texts, and pods that are numbers stay numbers."""
    whole_pods = all(isinstance(graph.attributes(node).get("pod", 0), int) for node in graph.nodes())
    return "".join(_lines(graph, {**NODE_TYPES, "pod": "long" if whole_pods else "string"}))


def _lines(graph: Graph, node_types: dict[str, str]) -> Iterator[str]:
    yield f'<?xml version="1.0" encoding="utf-8"?>\n<graphml xmlns="{NAMESPACE}">\n'
    for element, types in (("node", node_types), ("edge", LINK_TYPES)):
        for name, kind in types.items():
            yield f'  <key id="{name}" for="{element}" attr.name="{name}" attr.type="{kind}"/>\n'
    yield '  <graph edgedefault="undirected">\n'
    for node in graph.nodes():
        known = graph.attributes(node)
        values = {"kind": str(graph.kind(node)), "level": graph.level(node)}
        values |= {name: known[name] for name in NODE_ATTRIBUTES if name in known}
        yield f"    <node id={_quoted(node)}>{_data(values)}</node>\n"
    for link in graph.links():
        values = {"capacity_bps": link.capacity_bps, "weight": link.weight}
        if link.u_port is not None:
            values["source_port"] = link.u_port
        if link.v_port is not None:
            values["target_port"] = link.v_port
        yield f"    <edge source={_quoted(link.u)} target={_quoted(link.v)}>{_data(values)}</edge>\n"
    yield "  </graph>\n</graphml>\n"


def _quoted(value: object) -> str:
    return f'"{str(value).translate(_ESCAPES)}"'


def _data(values: dict[str, Any]) -> str:
    return "".join(f'<data key="{name}">{_quoted(value)[1:-1]}</data>' for name, value in values.items())


def read(text: str, assembly: Assembly) -> None:
    """Add the nodes and edges of an undirected graph; nested graphs, ports and hyperedges are refused."""
    document = _Document(assembly)
    try:
        document.parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        message = expat.ErrorString(error.code)
        raise TopologyFileError(assembly.source, f"no XML: {message}", error.lineno) from None
    if not document.graphs:
        raise TopologyFileError(assembly.source, "there is no graph", document.parser.CurrentLineNumber)


class _Key(NamedTuple):
    element: str
    name: str
    type: str


class _Document:
    """Handlers of one parse; a node or edge is handed on when its element ends, an edge when the graph ends."""

    def __init__(self, assembly: Assembly) -> None:
        self.graphs = 0
        self.parser = expat.ParserCreate("utf-8", " ")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.EntityDeclHandler = self._entity
        self._assembly = assembly
        self._keys: dict[str, _Key] = {}
        self._defaults: dict[str, tuple[str, RecordPosition]] = {}
        self._links: list[tuple[object, object, dict[str, Any], RecordPosition]] = []
        self._open: tuple[str, dict[str, str], RecordPosition] | None = None
        self._values: dict[str, Any] = {}
        self._key: tuple[str, RecordPosition] | None = None
        self._text = ""

    def _place(self) -> RecordPosition:
        return RecordPosition(self.parser.CurrentLineNumber)

    def _entity(self, *_: object) -> None:
        raise self._assembly.fault("entities are not read", self._place())

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name, place = tag.rpartition(" ")[2], self._place()
        if name == "key":
            identity = self._attribute(attributes, "id", place)
            kind = attributes.get("attr.type", "string")
            self._keys[identity] = _Key(attributes.get("for", "all"), attributes.get("attr.name", identity), kind)
            self._key = (identity, place)
        elif name == "graph":
            self.graphs += 1
            if self.graphs > 1:
                raise self._assembly.fault("one graph alone is read", place)
            if attributes.get("edgedefault", "undirected") != "undirected":
                raise self._assembly.fault("only undirected graphs are read", place, "edgedefault")
        elif name in ("node", "edge"):
            if not self.graphs or self._open is not None:
                raise self._assembly.fault(f"a {name} stands where none can", place)
            if attributes.get("directed", "false") not in ("false", "0"):
                raise self._assembly.fault("only undirected graphs are read", place, "directed")
            self._open, self._values = (name, attributes, place), {}
        elif name in ("port", "hyperedge"):
            raise self._assembly.fault(f"{name} is not read", place)
        elif name == "data":
            self._key = (self._attribute(attributes, "key", place), place)
        if name in ("data", "default"):
            self._text = ""

    def _characters(self, text: str) -> None:
        if len(self._text) < MAX_TEXT_CHARACTERS:
            self._text += text

    def _end(self, tag: str) -> None:
        name = tag.rpartition(" ")[2]
        if name == "default" and self._key is not None:
            self._defaults[self._key[0]] = (self._text, self._key[1])
        elif name == "data" and self._key is not None and self._open is not None:
            identity, place = self._key
            if identity not in self._keys:
                raise self._assembly.fault(f"there is no key {identity!r}", place, "data")
            self._value(identity, self._text, place)
        elif name in ("node", "edge") and self._open is not None:
            self._record(*self._open)
            self._open = None
        elif name == "graph":
            for link in self._links:
                self._assembly.link(*link)

    def _record(self, name: str, attributes: dict[str, str], place: RecordPosition) -> None:
        given, self._values = self._values, {}
        for identity, (text, where) in self._defaults.items():
            if self._keys[identity].element in (name, "all"):
                self._value(identity, text, where)
        values = {**self._values, **given}
        if name == "node":
            self._assembly.node(self._attribute(attributes, "id", place), values, place)
        else:
            source, target = (self._attribute(attributes, end, place) for end in ("source", "target"))
            self._links.append((source, target, values, place))

    def _value(self, identity: str, text: str, place: RecordPosition) -> None:
        _, name, kind = self._keys[identity]
        if name not in READ_ATTRIBUTES:
            return
        reader = READERS.get(kind)
        if reader is None:
            raise self._assembly.fault(f"there is no type {kind!r}", place, name)
        try:
            self._values[name] = reader(text if reader is str else text.strip())
        except (ValueError, KeyError):
            raise self._assembly.fault(f"{text[:40]!r} is no {kind}", place, name) from None

    def _attribute(self, attributes: dict[str, str], name: str, place: RecordPosition) -> str:
        if name not in attributes:
            raise self._assembly.fault("is missing", place, name)
        return attributes[name]
