"""What stands before the application: whom it answers, what it takes in, who may write, what every answer says."""

from __future__ import annotations

import asyncio
import logging
import math
import re
import time
from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from apps.dashboard.answers import JSON, Problem
from apps.dashboard.guesses import Guesses
from apps.dashboard.health import PATHS as HEALTH
from apps.dashboard.limits import ServerLimits
from apps.dashboard.tally import RequestTally, quoted
from apps.dashboard.tokens import Caller, TokenFiles, TokenRole, digest

MAX_PATH_BYTES = 2048
API = "/api/"
READS = ("GET", "HEAD", "OPTIONS")
_TRICKS = re.compile(rb"\\|//|%2f|%5c|%00|(?:^|/)(?:\.|%2e){1,2}(?:/|$)|[\x00-\x20\x7f-\xff]", re.IGNORECASE)
_NOT_UTF8 = "�"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = tuple(
    (name.encode(), value.encode())
    for name, value in (
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    )
)

access = logging.getLogger("vsrt.dashboard.access")


class RequestRefused(Problem):
    """A request that does not reach the application; `reason` is what it is counted under."""

    def __init__(self, reason: str, status: int, detail: str, **headers: str) -> None:
        super().__init__(status, detail, reason=reason)
        self.reason = reason
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class Guard:
    """Wraps an application.

    Parameters
    ----------
    app
        What is guarded.
    tally
        Where refused requests are counted.
    files
        The tokens, of which writes need an operator's; without one all are refused.
    guesses
        Where wrong tokens are counted by client.
    reads_need_token
        Whether reads of the API need a token too, a viewer's or an operator's.
    names
        Host names besides ``localhost`` and IP addresses by which the server may be asked: others would be those of a
        site that has its own name lead here.
    """

    def __init__(
        self,
        app: ASGIApp,
        tally: RequestTally,
        files: TokenFiles,
        guesses: Guesses,
        names: Iterable[str],
        limits: ServerLimits,
        *,
        reads_need_token: bool,
    ) -> None:
        self._app = app
        self._tally = tally
        self._files = files
        self._guesses = guesses
        self._reads_need_token = reads_need_token
        self._limits = limits
        self._names = {"localhost", *(name.lower().rstrip(".") for name in names)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        start_s, status = time.monotonic(), 0
        scope["state"] = {}

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *_headers(scope, message)]
            await send(message)

        try:
            headers = Headers(scope=scope)
            self._check(scope, headers)
            taken = await _body(headers, receive, self._limits)
            await self._app(scope, taken, sending)
        except RequestRefused as problem:
            self._tally.refuse(problem.reason, _client(scope), f"{scope['method']} {quoted(scope['raw_path'])}")
            if not status:
                answer = problem.response({**problem.headers, "Connection": "close"})
                await answer(scope, receive, sending)
        if scope["method"] not in READS:
            access.info(
                "%s %s %s %s: %d in %.1f ms",
                _client(scope),
                scope["state"].get("caller", "-"),
                scope["method"],
                quoted(scope["raw_path"]),
                status,
                1000 * (time.monotonic() - start_s),
            )

    def _check(self, scope: Scope, headers: Headers) -> None:
        raw_path: bytes = scope["raw_path"]
        if len(raw_path) > MAX_PATH_BYTES or _TRICKS.search(raw_path) or _NOT_UTF8 in scope["path"]:
            raise RequestRefused("path", 400, "the path is not one of this server's")
        if scope["path"] in HEALTH and scope["method"] in READS:
            return
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._is_ours(hosts[0]):
            raise RequestRefused(
                "host", 421, "this server is not asked by that name: see `dashboard.names` in the policy file"
            )
        is_api = scope["path"].startswith(API)
        self._check_origin(scope, headers, hosts[0], is_api)
        if scope["method"] not in READS:
            scope["state"]["caller"] = self._check_writer(scope, headers)
        elif is_api and self._reads_need_token:
            scope["state"]["caller"] = self._caller(scope, headers).name

    def _is_ours(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name.rstrip(".") in self._names:
            return True
        try:
            ip_address(name)
        except ValueError:
            return False
        return True

    def _check_origin(self, scope: Scope, headers: Headers, host: str, is_api: bool) -> None:
        """Refuse what another site has a browser ask; following a link to the page is no such thing."""
        origin = headers.get("origin")
        if origin is not None and origin != f"{scope['scheme']}://{host}":
            raise RequestRefused("cross-site", 403, "the request comes from another site")
        site = headers.get("sec-fetch-site", "none")
        navigates = headers.get("sec-fetch-mode") == "navigate" and scope["method"] == "GET" and not is_api
        if site not in ("none", "same-origin") and not navigates:
            raise RequestRefused("cross-site", 403, "the request comes from another site")

    def _check_writer(self, scope: Scope, headers: Headers) -> str:
        """Return the name of who may write; RequestRefused for whoever may not."""
        if not self._files.tokens.have_operators:
            raise RequestRefused("read-only", 403, "no operator's token is set: this server is read-only")
        caller = self._caller(scope, headers)
        if caller.role is not TokenRole.OPERATOR:
            raise RequestRefused("viewer", 403, f"the token is that of {caller.name}, who may read and not write")
        return caller.name

    def _caller(self, scope: Scope, headers: Headers) -> Caller:
        """Return whose the token of a request is; RequestRefused where it is nobody's, or too many were."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not given.strip():
            raise _unauthorized()
        address = scope["client"][0]
        wait_s = self._guesses.wait_s(address)
        if wait_s:
            seconds = math.ceil(wait_s)
            raise RequestRefused(
                "token-rate",
                429,
                f"too many wrong tokens came from this address: none is looked at for {seconds} s",
                Retry_After=str(seconds),
            )
        told = digest(given.strip().encode())
        caller = self._files.tokens.caller(told)
        if caller is None:
            self._guesses.note(address, told)
            raise _unauthorized()
        return caller


def _unauthorized() -> RequestRefused:
    return RequestRefused(
        "token", 401, "a bearer token is needed, and the right one", WWW_Authenticate='Bearer realm="vsrt"'
    )


def _headers(scope: Scope, message: Message) -> list[tuple[bytes, bytes]]:
    said = {name.lower() for name, _ in message.get("headers", ())}
    found = [*HEADERS]
    if b"cache-control" not in said:
        found.append((b"cache-control", b"no-store"))
    return found


async def _body(headers: Headers, receive: Receive, limits: ServerLimits) -> Receive:
    """Read the body, bounded in size and time, and return what hands it on."""
    length, chunked = headers.get("content-length", "0"), "transfer-encoding" in headers
    if not chunked and length == "0":
        return receive
    if not chunked and not (length.isdecimal() and int(length) <= limits.body_bytes):
        raise RequestRefused("body-size", 413, f"the body is longer than {limits.body_bytes} bytes")
    if headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise RequestRefused("media-type", 415, f"the body is not {JSON}")
    body = bytearray()
    try:
        async with asyncio.timeout(limits.body_s):
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise RequestRefused("body-time", 400, "the body ends before its end")
                body += message.get("body", b"")
                more = message.get("more_body", False)
                if len(body) > limits.body_bytes:
                    raise RequestRefused("body-size", 413, f"the body is longer than {limits.body_bytes} bytes")
    except TimeoutError:
        raise RequestRefused("body-time", 408, f"the body did not come within {limits.body_s:g} s") from None
    whole: Message | None = {"type": "http.request", "body": bytes(body), "more_body": False}

    async def taken() -> Message:
        nonlocal whole
        message, whole = whole, None
        return message if message is not None else await receive()

    return taken


def _client(scope: Scope) -> str:
    client = scope.get("client")
    return f"{client[0]}:{client[1]}" if client else "-"
