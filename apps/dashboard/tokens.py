"""Who may ask: the token files of viewers and operators, and whose a token is."""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from apps.dashboard.settings import ServerSettings, check_transport
from apps.tls_files import SettingsInvalid, check_private

MIN_TOKEN_LENGTH = 16
MAX_TOKEN_LENGTH = 4096
MAX_TOKENS = 256
MAX_FILE_BYTES = 1 << 18
COMMENT = b"#"

_NAME = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_PRINTABLE = re.compile(rb"[\x21-\x7e]+")
_KEY = secrets.token_bytes(32)

logger = logging.getLogger("vsrt.dashboard")


class TokenRole(StrEnum):
    """What the bearer of a token may do: viewers read, operators write too."""

    VIEWER = "viewer"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose a token is."""

    name: str
    role: TokenRole


@dataclass(frozen=True, slots=True)
class _Entry:
    caller: Caller
    digest: bytes
    place: str


class Tokens:
    """The callers by their tokens, of which digests are held alone."""

    def __init__(self, entries: Iterable[_Entry] = ()) -> None:
        self._callers = tuple((entry.digest, entry.caller) for entry in entries)
        self.have_operators = any(caller.role is TokenRole.OPERATOR for _, caller in self._callers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tokens) and self._callers == other._callers

    __hash__ = None  # type: ignore[assignment]

    def caller(self, digest_given: bytes) -> Caller | None:
        """Return whose the token with this digest is; it takes the same time whatever is given."""
        found = None
        for known, caller in self._callers:
            if hmac.compare_digest(known, digest_given):
                found = caller
        return found


class TokenFiles:
    """The tokens of a running server: files that change are read anew, and left aside where they are no good.

    SettingsInvalid where the server cannot start with them.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._stamps = _stamps(settings)
        self.tokens = read_tokens(settings)

    def poll(self) -> bool:
        """Look whether files have changed; return whether other tokens count from now on."""
        stamps = _stamps(self._settings)
        if stamps == self._stamps:
            return False
        self._stamps = stamps
        try:
            tokens = read_tokens(self._settings)
        except SettingsInvalid as error:
            logger.error("%s: the tokens that were read before stay", error)
            return False
        changed = tokens != self.tokens
        self.tokens = tokens
        if changed:
            logger.info("the token files have changed: other tokens count from now on")
        return changed


def digest(token: bytes) -> bytes:
    """Return a digest that only this process can make."""
    return hashlib.blake2b(token, key=_KEY, digest_size=32).digest()


def read_tokens(settings: ServerSettings) -> Tokens:
    """Return the tokens of both files; SettingsInvalid where one is no good, or tokens would be sent in clear."""
    given = (
        ("token_file", settings.token_file, TokenRole.OPERATOR),
        ("read_token_file", settings.read_token_file, TokenRole.VIEWER),
    )
    used = [(setting, Path(path), role) for setting, path, role in given if path]
    if not used:
        return Tokens()
    check_transport(settings)
    entries: list[_Entry] = []
    for setting, path, role in used:
        entries += _read(setting, path, role, entries)
    return Tokens(entries)


def _read(setting: str, path: Path, role: TokenRole, before: list[_Entry]) -> list[_Entry]:
    check_private(path, setting)
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise SettingsInvalid(f"{setting}: {path}: {error.strerror}") from error
    if len(content) > MAX_FILE_BYTES:
        raise SettingsInvalid(f"{setting}: {path}: the file is longer than {MAX_FILE_BYTES} bytes")
    entries: list[_Entry] = []
    for place, words in _lines(path, content):
        try:
            entries.append(_entry(words, role, place, [*before, *entries]))
        except ValueError as fault:
            raise SettingsInvalid(f"{setting}: {place}: {fault}") from fault
        if len(before) + len(entries) > MAX_TOKENS:
            raise SettingsInvalid(f"{setting}: {place}: there are more than {MAX_TOKENS} tokens")
    if not entries:
        raise SettingsInvalid(f"{setting}: {path}: the file holds no token")
    return entries


def _lines(path: Path, content: bytes) -> Iterator[tuple[str, list[bytes]]]:
    for number, line in enumerate(content.splitlines(), 1):
        words = line.split()
        if words and not words[0].startswith(COMMENT):
            yield f"{path}:{number}", words


def _entry(words: list[bytes], role: TokenRole, place: str, others: list[_Entry]) -> _Entry:
    """Return the entry of a line; ValueError, which quotes nothing of what may be a secret, where it is none."""
    if len(words) > 2:
        raise ValueError(f"expected a name and a token, or a token alone, found {len(words)} words")
    name, token = (role.value.encode(), words[0]) if len(words) == 1 else words
    if not _NAME.fullmatch(name):
        raise ValueError(
            "a name has up to 64 letters, digits, '.', '_', '-' and '@', and begins with a letter or a digit"
        )
    if not _PRINTABLE.fullmatch(token):
        raise ValueError("the token has characters that are not printable ASCII")
    if not MIN_TOKEN_LENGTH <= len(token) <= MAX_TOKEN_LENGTH:
        raise ValueError(
            f"the token has {len(token)} characters, and is to have {MIN_TOKEN_LENGTH} to {MAX_TOKEN_LENGTH}"
        )
    entry = _Entry(Caller(name.decode(), role), digest(token), place)
    for other in others:
        if other.caller.name == entry.caller.name:
            raise ValueError(f"the name is that of {other.place} again")
        if hmac.compare_digest(other.digest, entry.digest):
            raise ValueError(f"the token is that of {other.place} again")
    return entry


def _stamps(settings: ServerSettings) -> tuple[tuple[int, ...] | None, ...]:
    return tuple(_stamp(Path(path)) for path in (settings.token_file, settings.read_token_file) if path)


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)
