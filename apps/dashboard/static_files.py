"""The page's files: a fixed table made at the start, so that no path of a request ever reaches the file system."""

from __future__ import annotations

import hashlib
import mimetypes
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from apps.dashboard.answers import Problem

DIRECTORY = Path(__file__).parent / "static"
INDEX = "index.html"
_TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".woff2": "font/woff2", ".map": "application/json"}
_TEXT = ("text/", "application/json", "image/svg")


class _Content(NamedTuple):
    changed_ns: int
    data: bytes
    tag: str


class StaticFiles:
    """The files below a directory by name; a file that is written anew is read anew."""

    def __init__(self, directory: Path = DIRECTORY) -> None:
        self._paths = {
            path.relative_to(directory).as_posix(): path
            for path in sorted(directory.rglob("*"))
            if path.is_file() and not path.is_symlink()
        }
        self._contents: dict[str, _Content] = {}

    def answer(self, name: str, request: Request) -> Response:
        """Return a file; Problem where there is none of the name."""
        path = self._paths.get(name)
        if path is None:
            raise Problem(404, "there is no such file")
        try:
            content = self._read(name, path)
        except OSError as error:
            raise Problem(404, "there is no such file any more") from error
        headers = {"ETag": content.tag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == content.tag:
            return Response(None, 304, headers)
        media_type = _TYPES.get(path.suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
        if media_type.startswith(_TEXT) and not media_type.startswith("text/"):
            media_type += "; charset=utf-8"
        return Response(content.data, 200, headers, media_type)

    def _read(self, name: str, path: Path) -> _Content:
        changed_ns = path.stat().st_mtime_ns
        found = self._contents.get(name)
        if found is None or found.changed_ns != changed_ns:
            data = path.read_bytes()
            found = _Content(changed_ns, data, f'"{hashlib.sha256(data).hexdigest()[:32]}"')
            self._contents[name] = found
        return found
