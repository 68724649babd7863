"""OpenFlow 1.3 packet-ins whose match is parsed only where somebody looks at it.

The framework spends more on parsing the match of a packet-in than on all else of receiving it, and the cores need the
ingress port alone. Messages stay what other apps expect: `msg.match` is there on first use.
"""

from __future__ import annotations

from struct import Struct
from typing import Any

_FIXED = Struct("!IHBBQHHII")
"""buffer_id, total_len, reason, table_id, cookie; the match's type and length; its first field, where a port."""

_IN_PORT_FIELD = 0x80000004
_HEADER_BYTES, _MATCH_OFFSET = 8, 24


def use_light_packet_ins(parser_module: Any) -> None:
    """Have a framework's OpenFlow 1.3 parser module make packet-ins of the light kind."""
    base: Any = parser_module.OFPPacketIn

    class OFPPacketIn(base):  # type: ignore[misc]
        """A packet-in with `in_port` at hand; the event of the framework goes by the name of the class."""

        _match: Any = None

        @property
        def match(self) -> Any:
            """The match, parsed when first asked for."""
            if self._match is None:
                self._match = parser_module.OFPMatch.parser(self.buf, _MATCH_OFFSET)
            return self._match

        @match.setter
        def match(self, value: Any) -> None:
            self._match = value

        @property
        def in_port(self) -> int:
            """The ingress port."""
            return int(self.match["in_port"]) if self._in_port is None else self._in_port

        _in_port: int | None = None

        @classmethod
        def parser(cls, datapath: Any, version: int, kind: int, length: int, xid: int, buf: Any) -> Any:
            """Read a message; one that is not laid out as usual is read by the framework."""
            if length < _HEADER_BYTES + _FIXED.size:
                return base.parser.__func__(cls, datapath, version, kind, length, xid, buf)
            message = cls(datapath)
            message.set_headers(version, kind, length, xid)
            message.set_buf(buf)
            whole = message.buf
            (
                message.buffer_id,
                message.total_len,
                message.reason,
                message.table_id,
                message.cookie,
                _,
                match_bytes,
                field,
                port_no,
            ) = _FIXED.unpack_from(whole, _HEADER_BYTES)
            if field == _IN_PORT_FIELD:
                message._in_port = port_no
            start = _MATCH_OFFSET + match_bytes + -match_bytes % 8 + 2
            message.data = whole[start : start + message.total_len]
            return message

    parser_module._MSG_PARSERS[base.cls_msg_type] = OFPPacketIn.parser
