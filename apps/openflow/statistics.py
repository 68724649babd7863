"""Statistics replies whose body is parsed only where somebody looks at it.

The framework makes an object per entry, and never ends where an entry says that it has no length; the cores read the
bytes themselves. Messages stay what other apps expect: `msg.body` is there on first use. `msg.received_s` is the time
of day at which the reply was read off the connection, however long it waits for its app.
"""

from __future__ import annotations

import time
from struct import Struct
from typing import Any

_KIND_AND_FLAGS = Struct("!HH")
_HEADER_BYTES = 8
_LIGHT_KINDS = (1, 3, 4, 5, 6, 9)
"""Flow, table, port, queue, group and meter statistics."""


def use_light_statistics(parser_module: Any, base: Any) -> None:
    """Have a framework's parser module make statistics replies of the light kind; `base` is their common class."""
    parse = parser_module._MSG_PARSERS[base.cls_msg_type]
    light = {
        kind: _light(base._STATS_MSG_TYPES[kind], parse) for kind in _LIGHT_KINDS if kind in base._STATS_MSG_TYPES
    }

    def read(datapath: Any, version: int, kind: int, length: int, xid: int, buf: Any) -> Any:
        if length >= _HEADER_BYTES + _KIND_AND_FLAGS.size:
            found, flags = _KIND_AND_FLAGS.unpack_from(buf, _HEADER_BYTES)
            message_type = light.get(found)
            if message_type is not None:
                message = message_type(datapath)
                message.set_headers(version, kind, length, xid)
                message.set_buf(buf)
                message.type, message.flags = found, flags
                message.received_s = time.time()
                return message
        return parse(datapath, version, kind, length, xid, buf)

    parser_module._MSG_PARSERS[base.cls_msg_type] = read


def _light(heavy: Any, parse: Any) -> Any:
    """Return a reply class like `heavy` by name, whose body `parse` reads when it is first asked for."""

    class Light(heavy):  # type: ignore[misc]
        _body: Any = None

        @property
        def body(self) -> Any:
            """The entries, as the framework has them."""
            if self._body is None and self.buf is not None:
                whole = parse(self.datapath, self.version, self.msg_type, self.msg_len, self.xid, self.buf)
                self._body = whole.body
            return self._body

        @body.setter
        def body(self, value: Any) -> None:
            self._body = value

    Light.__name__ = heavy.__name__
    return Light
