"""The errors of Penstock: problems for users, and exceptions for the engine.

`Problem` is what users see: a code, a sentence, the path in the document and a hint. `PenstockError` is the
exception that carries problems. `Retryable` (with its subclass `Suspended`), `Fatal` and `Backpressure` are
for the engine: only they determine whether a step is retried.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from pydantic import BaseModel, Field, field_validator

from penstock.redaction import redacted


class Problem(BaseModel):
    """A problem, in the form that all interfaces show."""

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
    """An error with its problems. `status` is the corresponding HTTP status."""

    status = 400

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(str(p) for p in problems))
        self.problems = list(problems)


class Invalid(PenstockError):
    """A document or request is invalid: the error has all of its problems."""

    status = 422


class Unauthorised(PenstockError):
    """The token of the request is missing, wrong or revoked."""

    status = 401


class Forbidden(PenstockError):
    """The caller doesn't have the role that the request needs."""

    status = 403


class NotFound(PenstockError):
    """The requested resource does not exist."""

    status = 404


class Conflict(PenstockError):
    """The request is valid, but conflicts with the current state."""

    status = 409


class PreconditionFailed(PenstockError):
    """`If-Match` names a revision that is no longer current."""

    status = 412


class TooLarge(PenstockError):
    """The request exceeds a size limit."""

    status = 413


class UnsupportedMediaType(PenstockError):
    """The media type or the encoding of the body is not supported."""

    status = 415


class Unavailable(PenstockError):
    """The request can't be processed now; it may succeed later."""

    status = 503


class Retryable(Exception):
    """A transient failure of an external system: retry with backoff."""


class Suspended(Retryable):
    """This process can't continue now, such as without a lease: wait without limit; no attempt is counted."""


class Fatal(Exception):
    """A permanent failure: a retry can't help, and a user has to change something."""


class Backpressure(Exception):
    """The other system requests a pause of `retry_after` seconds."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


def nearest(word: object, choices: Iterable[str]) -> str | None:
    """The choice that is most similar to `word`; None if none is close."""
    close = difflib.get_close_matches(str(word).lower(), list(choices), n=1, cutoff=0.6)
    return close[0] if close else None


def did_you_mean(word: object, choices: Iterable[str]) -> str:
    """A hint for a misspelled word: the most similar choice, or all choices."""
    known = sorted(choices)
    close = nearest(word, known)
    return f"did you mean '{close}'?" if close else f"one of: {', '.join(known)}"
