"""What a client would rather have: the headers `Accept` and `Accept-Encoding`."""

from __future__ import annotations

from starlette.datastructures import Headers


def quality(header: str, *names: str) -> float:
    """How welcome something is, from 0 to 1; `names` are its names, the most precise one first."""
    wishes: dict[str, float] = {}
    for wish in header.lower().split(","):
        name, *parameters = (part.strip() for part in wish.split(";"))
        wishes[name] = next((_number(text[2:]) for text in parameters if text.startswith("q=")), 1.0)
    return next((wishes[name] for name in names if name in wishes), 0.0)


def prefers_html(headers: Headers) -> bool:
    """Whether a page is more welcome than JSON: to browsers it is, to `curl` both are the same."""
    accept = headers.get("accept", "*/*")
    page = quality(accept, "text/html", "text/*", "*/*")
    return page > quality(accept, "application/json", "application/*", "*/*")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
