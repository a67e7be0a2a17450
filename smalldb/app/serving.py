"""A server for this machine's own browser alone: one address, one secret path, no other hosts and origins."""

from __future__ import annotations

import contextlib
import hmac
import os
import socket
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smalldb.exact.bits import SystemBits
from smalldb.files import of_extra
from smalldb.files.open_folders import OpenFolder

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOCAL = "127.0.0.1"
# a browser that keeps to these sends nothing anywhere: not even what a file's names would have it load
HEADERS = {
    b"content-security-policy": b"default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
    b"style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; form-action 'none'; "
    b"base-uri 'none'; frame-ancestors 'self'",
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
    b"cache-control": b"no-store",
}
RELEASED = "released"  # the path of what was released, whose pages run no script and belong to no origin
POLICY = b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'; sandbox"
SANDBOX = {b"content-security-policy": POLICY}


class Guard:
    """Let through what this page asks by its own address: no other host, no other origin, no other path."""

    def __init__(self, inner: ASGIApp, host: str, token: str) -> None:
        self._inner, self._host, self._token = inner, host.encode(), token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] == "lifespan":
            return await self._inner(scope, receive, send)
        if not self._allowed(scope):
            if scope["type"] == "websocket":
                await receive()
                return await send({"type": "websocket.close", "code": 1008})
            await send({"type": "http.response.start", "status": 403, "headers": []})
            return await send({"type": "http.response.body", "body": b"smalldb: refused\n"})

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = HEADERS | (SANDBOX if scope["path"].split("/")[2:3] == [RELEASED] else {})
                kept = [pair for pair in message.get("headers", ()) if pair[0].lower() not in headers]
                message["headers"] = [*kept, *headers.items()]
            await send(message)

        return await self._inner(scope, receive, guarded)

    def _allowed(self, scope: Scope) -> bool:
        """Tell whether a request has the one host, no foreign origin, and the secret in its path."""
        names = b"host", b"origin", b"sec-fetch-site"
        headers = {name: [value for key, value in scope["headers"] if key == name] for name in names}
        origins, needed = headers[b"origin"], int(scope["type"] == "websocket")
        _, _, rest = scope["path"].encode().partition(b"/")
        return (
            headers[b"host"] == [self._host]
            and needed <= len(origins) <= 1
            and all(origin == b"http://" + self._host for origin in origins)
            and all(site in (b"same-origin", b"none") for site in headers[b"sec-fetch-site"])
            and hmac.compare_digest(rest.partition(b"/")[0], self._token)
        )


def serve(folder: Path, *, browser: bool) -> None:
    """Serve the page for a folder until the process is ended; print its address, and open it in a browser."""
    with of_extra("Shiny", "app", "pages in the browser"):
        import uvicorn
        from starlette.applications import Starlette
        from starlette.routing import Mount, Route

        from smalldb.app.steps import shiny_app
    from smalldb.app.workplace import Workplace

    os.chdir(folder)  # what a schema names is found as by the commands
    with OpenFolder(".") as opened:
        opened.check_owner(folder)
    # wherever the folder is moved
    work, token = Workplace(Path()), f"{SystemBits().bits(128):032x}"
    with socket.socket() as listening:
        listening.bind((LOCAL, 0))
        listening.listen()
        host = f"{LOCAL}:{listening.getsockname()[1]}"
        routes = [
            Route(f"/{token}/{RELEASED}/{{release}}/{{file:path}}", work.download),
            Mount(f"/{token}", shiny_app(work)),
        ]
        quiet: Any = {"log_level": "error", "access_log": False, "server_header": False}
        config = uvicorn.Config(Guard(Starlette(routes=routes), host, token), **quiet)
        print(f"http://{host}/{token}/", flush=True)
        if browser:
            webbrowser.open(f"http://{host}/{token}/")
        server = uvicorn.Server(config)
        # signals end it as they end every command
        server.capture_signals = contextlib.nullcontext  # type: ignore[assignment, method-assign]
        server.run([listening])
