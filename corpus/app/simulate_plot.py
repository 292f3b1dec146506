"""The plot of `corpus simulate recrawl` as SVG, drawn without a plotting library: freshness over the number of visits."""

from __future__ import annotations

from typing import Any

WIDTH, HEIGHT, LEFT, BOTTOM, RIGHT, TOP = 640, 400, 60, 50, 150, 30
COLOURS = {"uniform": "#1b6ca8", "proportional": "#c0392b", "optimal": "#7f8c8d"}


def recrawl_svg(told: dict[str, Any]) -> str:
    """Points: what was simulated; rings: the closed form; the dashed line: the best that knowing every rate could do."""
    budgets = sorted(told["model"]["every_days"], reverse=True)
    most = 30.0 / budgets[-1]

    def place(every: float, value: float) -> tuple[float, float]:
        x = LEFT + (WIDTH - LEFT - RIGHT) * (30.0 / every) / (most * 1.1)
        return round(x, 1), round(HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * value, 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        *_axes(budgets, place),
    ]
    modes = list(dict.fromkeys(run["mode"] for run in told["runs"]))
    for n, mode in enumerate(modes):
        runs = sorted((run for run in told["runs"] if run["mode"] == mode), key=lambda run: -run["every_days"])
        points = [place(run["every_days"], run["freshness"]) for run in runs]
        colour = COLOURS.get(mode, "black")
        parts.append(f'<polyline fill="none" stroke="{colour}" points="{_path(points)}"/>')
        parts += [f'<circle cx="{x}" cy="{y}" r="3.5" fill="{colour}"/>' for x, y in points]
        rings = [place(run["every_days"], run["closed_form"]) for run in runs]
        parts += [f'<circle cx="{x}" cy="{y}" r="7" fill="none" stroke="{colour}"/>' for x, y in rings]
        parts.append(_legend(n, mode, colour))
    best = [place(every, told["optimal"][f"{every:g}"]) for every in budgets]
    parts.append(f'<polyline fill="none" stroke="{COLOURS["optimal"]}" stroke-dasharray="5 4" points="{_path(best)}"/>')
    parts.append(_legend(len(modes), "optimum (closed form)", COLOURS["optimal"]))
    return "\n".join([*parts, "</svg>", ""])


def _axes(budgets: list[float], place: Any) -> list[str]:
    parts = []
    for tenth in range(0, 11, 2):
        _, y = place(budgets[0], tenth / 10)
        parts.append(f'<line x1="{LEFT}" y1="{y}" x2="{WIDTH - RIGHT}" y2="{y}" stroke="#dddddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{tenth / 10:.1f}</text>')
    for every in budgets:
        x, y = place(every, 0.0)
        parts.append(f'<text x="{x}" y="{y + 18}" text-anchor="middle">{30 / every:g}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 12}" text-anchor="middle">visits per page in 30 days</text>')
    parts.append(
        f'<text x="16" y="{HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 16 {HEIGHT / 2})">average freshness</text>'
    )
    return parts


def _legend(n: int, text: str, colour: str) -> str:
    y = TOP + 20 * n
    x = WIDTH - RIGHT + 12
    return f'<circle cx="{x}" cy="{y}" r="4" fill="{colour}"/><text x="{x + 10}" y="{y + 4}">{text}</text>'


def _path(points: list[tuple[float, float]]) -> str:
    return " ".join(f"{x},{y}" for x, y in points)
