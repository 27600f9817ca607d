"""Log-in with an OpenID Connect provider: the redirect to the provider, and the callback."""

import hmac
from functools import cache
from typing import Annotated
from urllib.parse import urlencode

import structlog
from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse

from penstock.api.access.cookies import give_cookie
from penstock.api.access.parameters import address_of
from penstock.api.errors import Responses, failures
from penstock.control.access.access import Access
from penstock.control.access.oidc import Pending, Provider
from penstock.control.access.refusals import REFUSED, Refusal
from penstock.errors import NotFound, PenstockError, Problem

log = structlog.get_logger()

COOKIE, PATH = "penstock_oidc", "/session/oidc"
"""Stores a log-in while the browser is at the provider. Strict cookies are not sent on the way back."""

LOGIN_S = 600
"""Seconds that a log-in may take."""

_AWAY: Responses = {302: {"description": "To the provider, or back to the web app."}}


def oidc_routes(access: Access) -> APIRouter:
    """The two routes of a log-in."""
    router = APIRouter(prefix=PATH, tags=["access"])

    @cache
    def provider() -> Provider:
        return Provider(access.settings.auth.oidc)

    @router.get(
        "",
        summary="Log in with the OpenID Connect provider",
        operation_id="logInWithProvider",
        status_code=302,
        response_class=RedirectResponse,
        responses={**_AWAY, **failures(404)},
    )
    def start(request: Request) -> RedirectResponse:
        if access.settings.auth.oidc.issuer is None:
            message = "there is no OpenID Connect provider"
            raise NotFound(Problem(code="no_provider", message=message, hint="set auth.oidc.issuer"))
        pending = Pending.new()
        try:
            answer = RedirectResponse(provider().start(pending, _back(request)), 302)
        except PenstockError as error:
            return _refused(error)
        secure = request.url.scheme == "https"
        answer.set_cookie(
            COOKIE, str(pending), LOGIN_S, path=PATH, secure=secure, httponly=True, samesite="lax"
        )
        return answer

    @router.get(
        "/callback",
        summary="Come back from the OpenID Connect provider",
        operation_id="returnFromProvider",
        status_code=302,
        response_class=RedirectResponse,
        responses=_AWAY,
    )
    def callback(
        request: Request,
        code: Annotated[str | None, Query(description="What the provider exchanges for an ID token.")] = None,
        state: Annotated[str, Query(description="What this server has sent with the browser.")] = "",
        error: Annotated[str | None, Query(description="Why the provider refuses.")] = None,
    ) -> RedirectResponse:
        name: str | None = None
        address = address_of(request)
        try:
            pending = Pending.parse(request.cookies.get(COOKIE, ""))
            if pending is None or not hmac.compare_digest(pending.state.encode(), state.encode()):
                raise _problem("oidc_state", "the log-in was begun in another browser, or took too long")
            if code is None:
                raise _problem("oidc_denied", f"the provider refuses: {error or 'no code'}"[:200])
            claims = provider().finish(pending, code, _back(request))
            name = str(claims["sub"])
            user = provider().user(access.users, claims)
        except PenstockError as refusal:
            log.warning("log-in with OpenID Connect failed", error=str(refusal))
            answer = _refused(refusal)
            status = refusal.status if refusal.status in REFUSED else 401
            target = f"user/{name}" if name else "user"
            access.refusals.add(Refusal("session.login", target, name, "oidc", address, status))
        else:
            answer = RedirectResponse("/ui/", 302)
            give_cookie(request, answer, access.sessions.open(user))
            access.refresh()
            target = f"user/{user.name}"
            access.audit.record(
                "session.login", target, user=user.name, via="oidc", address=address, status=302
            )
        answer.delete_cookie(COOKIE, path=PATH)
        return answer

    return router


def _back(request: Request) -> str:
    """The URL of the callback: this server, under the host name that the browser uses."""
    return f"{request.url.scheme}://{request.url.netloc}{PATH}/callback"


def _refused(error: PenstockError) -> RedirectResponse:
    return RedirectResponse(f"/ui/login?{urlencode({'error': error.problems[0].code})}", 302)


def _problem(code: str, message: str) -> PenstockError:
    return PenstockError(Problem(code=code, message=message))
