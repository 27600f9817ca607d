"""Curves as SVG, for the documentation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 24, 40, 64
COLOURS = ("#0b7285", "#868e96", "#e67700", "#5f3dc4")

Curve = Sequence[tuple[float, float]]


MARKED = 20
"""Maximum number of points at which each point is marked, with its value below the axis."""


def plot(
    file: Path, title: str, x: str, y: str, curves: Mapping[str, Curve], *, linear: bool = False
) -> None:
    """Draw curves over a logarithmic or a linear axis, from zero upwards."""
    points = [point for curve in curves.values() for point in curve]
    scale: Callable[[float], float] = float if linear else math.log10
    places = sorted({px for px, _ in points})
    low, high = scale(0.0 if linear else places[0]), scale(places[-1])
    marked = len(places) <= MARKED
    step = _step(max(py for _, py in points))
    top = step * math.ceil(max(py for _, py in points) / step)

    def at(px: float, py: float) -> tuple[float, float]:
        across = (scale(px) - low) / (high - low or 1)
        right = LEFT + across * (WIDTH - LEFT - RIGHT)
        return round(right, 1), round(HEIGHT - BOTTOM - py / top * (HEIGHT - TOP - BOTTOM), 1)

    parts = [_text(LEFT, 20, title, size=15, anchor="start")]
    for number in range(round(top / step) + 1):
        right, down = at(0.0 if linear else places[0], number * step)
        parts.append(f'<path d="M{right} {down}H{WIDTH - RIGHT}" stroke="#dee2e6"/>')
        parts.append(_text(right - 8, down + 4, f"{number * step:g}", anchor="end"))
    for px in places if marked else _ticks(places[-1]):
        parts.append(_text(at(px, 0)[0], HEIGHT - BOTTOM + 18, _short(px)))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 36, x))
    parts.append(
        f'<g transform="translate(16 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)">{_text(0, 0, y)}</g>'
    )
    for number, (name, curve) in enumerate(curves.items()):
        colour, shown = COLOURS[number % len(COLOURS)], [at(*point) for point in sorted(curve)]
        line = " ".join(f"{right},{down}" for right, down in shown)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        dots = shown if marked else []
        parts += [f'<circle cx="{right}" cy="{down}" r="4" fill="{colour}"/>' for right, down in dots]
        below, left = HEIGHT - 8, LEFT + number * (WIDTH - LEFT) / len(curves)
        parts.append(f'<rect x="{left}" y="{below - 10}" width="10" height="10" fill="{colour}"/>')
        parts.append(_text(left + 16, below, name, anchor="start"))
    box = f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif"'
    background = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
    file.write_text(f"<svg {box}>{background}{''.join(parts)}</svg>\n", encoding="utf-8")


def _text(x: float, y: float, text: str, *, size: int = 12, anchor: str = "middle") -> str:
    look = f'font-size="{size}" text-anchor="{anchor}" fill="#343a40"'
    return f'<text x="{x}" y="{y}" {look}>{escape(text)}</text>'


def _ticks(most: float) -> list[float]:
    """Round numbers from zero up to the maximum."""
    step = _step(most)
    return [number * step for number in range(math.floor(most / step) + 1)]


def _step(most: float) -> float:
    """A round distance between two grid lines, for about five lines up to the top."""
    rough = most / 4
    unit = 10.0 ** math.floor(math.log10(rough))
    return next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)


def _short(number: float) -> str:
    return f"{number / 1e6:g} M" if number >= 1e6 else f"{number:,g}"
