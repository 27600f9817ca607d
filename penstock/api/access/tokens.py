"""Tokens for programs."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Path, Request
from pydantic import Field

from penstock.api.access.parameters import Who
from penstock.api.access.sessions import Body
from penstock.api.access.trail import note_of
from penstock.api.errors import failures
from penstock.api.views import View
from penstock.control.access.access import Access
from penstock.control.access.callers import Caller
from penstock.control.access.roles import TokenRole, may_grant
from penstock.control.access.tokens import Token
from penstock.control.access.users import LOCAL
from penstock.errors import Forbidden, NotFound, Problem

LONGEST_DAYS = 36_500


class TokenInfo(View):
    """A token, without its secret."""

    id: str
    name: str
    role: TokenRole
    source: str | None = Field(description="The only source that an `ingest` token can send events to.")
    user: str = Field(description="Who made it; `local` if there was no user.")
    created_at: datetime
    expires_at: datetime | None = Field(description="Null: it has no end.")
    last_used_at: datetime | None = Field(description="Written once a minute at most.")


class NewTokenInfo(TokenInfo):
    """A newly created token."""

    secret: str = Field(description="What a program sends as `Authorization: Bearer`. Not shown again.")


class TokenList(View):
    """The tokens of the caller; for admins, all tokens."""

    tokens: list[TokenInfo]


class NewToken(Body):
    """A token to be created."""

    name: str = Field(min_length=1, max_length=100, description="What it is for.")
    role: TokenRole = Field(description="At most one's own; `ingest` needs the role operator, `worker` admin")
    source: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="For `ingest`: what follows /ingest/ in URLs.",
    )
    expires_in_days: float | None = Field(
        default=None, gt=0, le=LONGEST_DAYS, description="Unset: it has no end."
    )


def token_routes(access: Access) -> APIRouter:
    """The routes of tokens."""
    router = APIRouter(prefix="/tokens", tags=["access"])

    @router.get("", summary="List tokens", operation_id="listTokens")
    def tokens(caller: Who) -> TokenList:
        found = access.tokens.all(user=None if caller.role == "admin" else caller.name)
        return TokenList(tokens=[TokenInfo.model_validate(vars(token)) for token in found])

    @router.post(
        "",
        summary="Make a token",
        description="One that is made with a token ends no later than that one.",
        operation_id="createToken",
        status_code=201,
        responses=failures(403),
    )
    def create(given: NewToken, caller: Who, request: Request) -> NewTokenInfo:
        if not may_grant(caller.role, given.role):
            message = (
                f"a token with the role {given.role} needs a role that includes it; you are {caller.role}"
            )
            raise Forbidden(Problem(code="forbidden", message=message, path="role"))
        made, secret = access.tokens.make(
            given.name,
            given.role,
            user=None if caller.name == LOCAL else caller.name,
            source=given.source,
            expires_at=_end(given, caller),
        )
        note = note_of(request)
        note.target, note.after = f"token/{made.id}", audited(made)
        return NewTokenInfo(**vars(made), secret=secret)

    @router.delete(
        "/{id}",
        summary="Revoke a token",
        operation_id="revokeToken",
        status_code=204,
        responses=failures(403, 404),
    )
    def revoke(id: Annotated[str, Path(min_length=1, max_length=64)], caller: Who, request: Request) -> None:  # noqa: A002
        found = access.tokens.get(id)
        if found.user != caller.name and caller.role != "admin":
            raise NotFound(Problem(code="not_found", message=f"there is no token '{id}'"))
        note_of(request).before = audited(found)
        access.tokens.revoke(id)
        access.forget()

    return router


def audited(token: Token) -> dict[str, object]:
    """A token as recorded in the audit trail."""
    ends = token.expires_at.isoformat() if token.expires_at else None
    return {"name": token.name, "role": token.role, "source": token.source, "expires_at": ends}


def _end(given: NewToken, caller: Caller) -> datetime | None:
    asked = None
    if given.expires_in_days is not None:
        asked = datetime.now(UTC) + timedelta(days=given.expires_in_days)
    ends = [end for end in (asked, caller.expires_at) if end is not None]
    return min(ends, default=None)
