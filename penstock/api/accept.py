"""Content negotiation: the headers `Accept` and `Accept-Encoding`."""

from __future__ import annotations

from starlette.datastructures import Headers


def quality(header: str, *names: str) -> float:
    """The quality value of a type in a header, from 0 to 1; `names` match the type, most specific first."""
    wishes: dict[str, float] = {}
    for wish in header.lower().split(","):
        name, *parameters = (part.strip() for part in wish.split(";"))
        wishes[name] = next((_number(text[2:]) for text in parameters if text.startswith("q=")), 1.0)
    return next((wishes[name] for name in names if name in wishes), 0.0)


def prefers_html(headers: Headers) -> bool:
    """Whether a client prefers HTML to JSON: browsers do, `curl` accepts both equally."""
    accept = headers.get("accept", "*/*")
    page = quality(accept, "text/html", "text/*", "*/*")
    return page > quality(accept, "application/json", "application/*", "*/*")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
