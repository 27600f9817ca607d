"""Users, for admins."""

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Request
from pydantic import Field

from penstock.api.access.sessions import Body
from penstock.api.access.trail import note_of
from penstock.api.errors import failures
from penstock.api.views import View
from penstock.control.access.access import Access
from penstock.control.access.passwords import LONGEST, SHORTEST
from penstock.control.access.roles import Role
from penstock.control.access.users import User

UserName = Annotated[str, Path(min_length=1, max_length=64, description="The name of the user.")]


class UserInfo(View):
    """A user."""

    name: str
    role: Role
    via: Literal["password", "oidc"] = Field(description="How the user logs in.")
    disabled: bool
    created_at: datetime
    last_login_at: datetime | None


class UserList(View):
    """All users."""

    users: list[UserInfo]


class NewUser(Body):
    """A user who logs in with a password."""

    name: str = Field(max_length=64)
    role: Role
    password: str = Field(min_length=SHORTEST, max_length=LONGEST)


class UserChange(Body):
    """The fields to change; omitted fields are unchanged."""

    role: Role | None = None
    password: str | None = Field(default=None, min_length=SHORTEST, max_length=LONGEST)
    disabled: bool | None = None


def user_routes(access: Access) -> APIRouter:
    """The routes of users."""
    router = APIRouter(prefix="/users", tags=["access"])

    @router.get("", summary="List users", operation_id="listUsers", responses=failures(403))
    def users() -> UserList:
        return UserList(users=[_shown(user) for user in access.users.all()])

    @router.post(
        "",
        summary="Create a user",
        description="The first one has to be an admin. From then on people have to log in.",
        operation_id="createUser",
        status_code=201,
        responses=failures(403, 409),
    )
    def create(given: NewUser, request: Request) -> UserInfo:
        note = note_of(request)
        note.target = f"user/{given.name}"
        made = access.users.add(given.name, given.role, given.password)
        access.refresh()
        note.after = audited(made)
        return _shown(made)

    @router.patch(
        "/{name}",
        summary="Change a user",
        description="A new password, or being disabled, ends the sessions of the user.",
        operation_id="changeUser",
        responses=failures(403, 404, 409),
    )
    def change(name: UserName, given: UserChange, request: Request) -> UserInfo:
        note = note_of(request)
        note.before = audited(access.users.get(name))
        changed = access.users.change(name, **given.model_dump())
        access.forget()
        note.after = {**audited(changed), **({"password": "changed"} if given.password else {})}
        return _shown(changed)

    @router.delete(
        "/{name}",
        summary="Remove a user, with all sessions and tokens",
        operation_id="deleteUser",
        status_code=204,
        responses=failures(403, 404, 409),
    )
    def remove(name: UserName, request: Request) -> None:
        note_of(request).before = audited(access.users.get(name))
        access.users.remove(name)
        access.forget()

    return router


def audited(user: User) -> dict[str, object]:
    """A user as recorded in the audit trail."""
    return {"role": user.role, "via": user.via, "disabled": user.disabled}


def _shown(user: User) -> UserInfo:
    return UserInfo.model_validate(vars(user))
