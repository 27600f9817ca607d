"""The two vocabularies of failure.

`Problem` is what a user sees: a code, a sentence, the place in the document and what to do. `PenstockError`
carries problems out of a call. `Retryable` (of which `Suspended` is one), `Fatal` and `Backpressure` are for
the engine: they, and nothing else, decide whether a step is tried again.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from pydantic import BaseModel, Field, field_validator

from penstock.redaction import redacted


class Problem(BaseModel):
    """One thing that is wrong, in the shape every interface shows it."""

    code: str = Field(description="Stable identifier of the kind of problem.")
    message: str = Field(description="The problem, in one sentence.")
    path: str | None = Field(default=None, description="Place in the document, such as `spec.sinks[1].path`.")
    hint: str | None = Field(default=None, description="How to fix it.")

    @field_validator("message", "hint")
    @classmethod
    def _without_secrets(cls, text: str | None) -> str | None:
        return None if text is None else redacted(text)

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{where}{self.message}{hint}"


class PenstockError(Exception):
    """A refusal with its problems. `status` is the HTTP status that says the same."""

    status = 400

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(str(p) for p in problems))
        self.problems = list(problems)


class Invalid(PenstockError):
    """A document that cannot be accepted: all of its problems at once."""

    status = 422


class Unauthorised(PenstockError):
    """The token of the request is missing, wrong or revoked."""

    status = 401


class Forbidden(PenstockError):
    """The caller has not the role that the request needs."""

    status = 403


class NotFound(PenstockError):
    """What was asked for does not exist."""

    status = 404


class Conflict(PenstockError):
    """The request is well formed, but the present state forbids it."""

    status = 409


class PreconditionFailed(PenstockError):
    """`If-Match` names a revision that is no longer the current one."""

    status = 412


class TooLarge(PenstockError):
    """More than a limit allows was sent."""

    status = 413


class UnsupportedMediaType(PenstockError):
    """The body is of a type, or encoded in a way, that is not accepted here."""

    status = 415


class Unavailable(PenstockError):
    """The request cannot be answered now; it may succeed later."""

    status = 503


class Retryable(Exception):
    """The outside world failed in a way that may pass: try again with backoff."""


class Suspended(Retryable):
    """This process cannot go on now, such as without a lease: wait, however long; no attempt is used up."""


class Fatal(Exception):
    """A retry cannot help: a user has to change something."""


class Backpressure(Exception):
    """The other side asks for a pause of `retry_after` seconds."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


def nearest(word: object, choices: Iterable[str]) -> str | None:
    """The choice a person most likely meant by `word`, if one is close."""
    close = difflib.get_close_matches(str(word).lower(), list(choices), n=1, cutoff=0.6)
    return close[0] if close else None


def did_you_mean(word: object, choices: Iterable[str]) -> str:
    """A hint for a misspelt word: the nearest choice, or all of them."""
    known = sorted(choices)
    close = nearest(word, known)
    return f"did you mean '{close}'?" if close else f"one of: {', '.join(known)}"
