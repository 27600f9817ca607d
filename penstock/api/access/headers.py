"""Security headers of every response, which restrict what browsers do with it."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.control.access.access import Access

_ALWAYS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    # For responses that are not pages: pages have their own policy.
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
_SECURE = (b"strict-transport-security", b"max-age=31536000")
_CACHE, _NOT_KEPT = b"cache-control", (b"cache-control", b"no-store")


class SecurityHeaders:
    """Adds the security headers that a response does not set itself."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = self._with_more(scope, list(message.get("headers", ())))
            await send(message)

        await self.app(scope, receive, secured)

    def _with_more(self, scope: Scope, headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        known = {name for name, _ in headers}
        headers += [header for header in _ALWAYS if header[0] not in known]
        if scope["scheme"] == "https":
            headers.append(_SECURE)
        if self._access.on and not f"{scope['path']}/".startswith("/ui/"):
            # A response to one user must not be cached for the next user.
            headers = [*(header for header in headers if header[0] != _CACHE), _NOT_KEPT]
        return headers
