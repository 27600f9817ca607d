"""Log-in, log-out, and the current user."""

from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from penstock.api.access.cookies import COOKIE, give_cookie, take_cookie
from penstock.api.access.parameters import Somebody, Who, address_of
from penstock.api.access.trail import note_of
from penstock.api.errors import failures
from penstock.api.views import View
from penstock.control.access.access import Access
from penstock.control.access.callers import Caller
from penstock.control.access.passwords import LONGEST, SHORTEST
from penstock.control.access.users import User
from penstock.errors import Conflict, Problem


class SessionUser(View):
    """The user of a request."""

    name: str
    role: str
    via: Literal["local", "password", "oidc", "token"] = Field(
        description="How they have shown it; `local`: not at all, because authentication is off."
    )


class OidcInfo(View):
    """Log-in with an OpenID Connect provider."""

    label: str = Field(description="The text of the log-in button.")


class SessionInfo(View):
    """The user of the request, and how to log in."""

    authentication: Literal["on", "off"]
    user: SessionUser | None = Field(description="Null if the request has no valid session or token.")
    csrf: str | None = Field(
        description="What requests of this session have to send as `X-CSRF-Token` if they change something."
    )
    oidc: OidcInfo | None = Field(description="Null if no provider is configured.")
    setup: bool = Field(description="Whether the first admin has to be made, by the link of `penstock up`.")


class Body(BaseModel):
    """The body of a request about access: unknown fields are errors."""

    model_config = ConfigDict(extra="forbid")


class LoginBody(Body):
    """The credentials of a log-in."""

    name: str = Field(max_length=200)
    password: str = Field(max_length=LONGEST)


class SetupBody(Body):
    """The first admin."""

    secret: str = Field(max_length=200, description="From the link that `penstock up` prints.")
    name: str = Field(max_length=200)
    password: str = Field(min_length=SHORTEST, max_length=LONGEST)


class PasswordChange(Body):
    """A new password for the current user."""

    current: str = Field(max_length=LONGEST)
    new: str = Field(min_length=SHORTEST, max_length=LONGEST)


def session_routes(access: Access) -> APIRouter:
    """The routes for the session of the caller."""
    router = APIRouter(prefix="/session", tags=["access"])

    def shown(caller: Caller | None) -> SessionInfo:
        oidc = access.settings.auth.oidc
        return SessionInfo(
            authentication="on" if access.on else "off",
            user=None if caller is None else SessionUser(name=caller.name, role=caller.role, via=caller.via),
            csrf=caller.csrf if caller else None,
            oidc=OidcInfo(label=oidc.label) if oidc.issuer else None,
            setup=access.on and not access.users.exist(),
        )

    def opened(user: User, request: Request, response: Response) -> SessionInfo:
        """Open a new session; an earlier one of the browser is closed, since its secret might be known."""
        if (earlier := request.cookies.get(COOKIE)) and (known := access.of_session(earlier)):
            access.sessions.close(str(known.session))
            access.forget()
        secret = access.sessions.open(user)
        give_cookie(request, response, secret)
        note_of(request).via = user.via
        return shown(access.of_session(secret))

    @router.get("", summary="Get who one is, and how to log in", operation_id="getSession")
    def get(caller: Somebody) -> SessionInfo:
        return shown(caller)

    @router.post(
        "", summary="Log in with a password", operation_id="logIn", responses=failures(401, 403, 429)
    )
    def log_in(given: LoginBody, request: Request, response: Response) -> SessionInfo:
        note = note_of(request)
        note.user, note.via, note.target = given.name, "password", f"user/{given.name}"
        return opened(access.log_in(given.name, given.password, address_of(request)), request, response)

    @router.delete("", summary="Log out", operation_id="logOut", status_code=204, responses=failures(403))
    def log_out(caller: Somebody, request: Request, response: Response) -> None:
        if caller is not None and caller.session is not None:
            note_of(request).target = f"user/{caller.name}"
            access.sessions.close(caller.session)
            access.forget()
        take_cookie(request, response)

    @router.post(
        "/setup",
        summary="Make the first admin",
        operation_id="setUp",
        responses=failures(401, 403, 409, 429),
    )
    def set_up(given: SetupBody, request: Request, response: Response) -> SessionInfo:
        note, address = note_of(request), address_of(request)
        note.user, note.via, note.target = given.name, "password", f"user/{given.name}"
        access.attempts.begin("", address)
        made = access.set_up(given.secret, given.name, given.password)
        access.attempts.succeeded("", address)
        note.after = {"role": made.role}
        return opened(made, request, response)

    @router.put(
        "/password",
        summary="Change one's own password",
        description="All other sessions of the user end.",
        operation_id="changePassword",
        status_code=204,
        responses=failures(401, 403, 409, 429),
    )
    def change_password(given: PasswordChange, caller: Who, request: Request, response: Response) -> None:
        note_of(request).target = f"user/{caller.name}"
        if caller.via != "password":
            raise _no_password(caller)
        access.log_in(caller.name, given.current, address_of(request))
        user = access.users.change(caller.name, password=given.new)
        access.forget()
        give_cookie(request, response, access.sessions.open(user))

    return router


def _no_password(caller: Caller) -> Conflict:
    how: dict[Any, str] = {"oidc": "with OpenID Connect", "token": "with a token", "local": "not at all"}
    message = f"you have logged in {how[caller.via]}: there is no password to change"
    return Conflict(Problem(code="no_password", message=message))
