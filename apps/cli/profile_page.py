"""A profile as a page that needs nothing else: a table, and plots of each operation as drawings within it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import log10

from apps.cli.profile_texts import ProfileReport, cell, change_text, head_lines, others_text, waits_text
from controller.profiles.figures import OperationChange, OperationFigures

WIDTH, HEIGHT = 340, 170
LEFT, RIGHT, TOP, BOTTOM = 44, 8, 10, 34
FEWEST_BARS = 8
"""A histogram has room for so many at least, so that one bar is none that fills it."""

ABOUT = {
    "join": "from a report that came in until the host's own switch has confirmed that the group goes to its port",
    "leave": "from a report that came in until the host's own switch has confirmed that the group goes there no "
    "more; most of it is the wait for other members",
    "connect": "from a switch's connection until it holds what it shall",
    "repair": "from a link or switch that is gone until every switch holds what it shall",
    "reload": "from a policy that is taken until everybody is judged by it and every switch holds what it shall",
    "drain": "from the order until every switch holds what it shall",
    "poll": "from the request for counters until the last part of the answer",
    "journal": "from an entry for the log until it is on the disk",
    "campaign-step": "from the beginning of a step of maintenance at a switch until the next",
}

STYLE = """
:root{color-scheme:light dark;--ink:#1b2430;--dim:#5b6875;--line:#d5dbe1;--card:#fff;--page:#f3f5f7;--one:#0072b2;
--two:#d55e00;--bad:#b3261e;--good:#00704a}
@media(prefers-color-scheme:dark){:root{--ink:#e6ebf0;--dim:#9aa7b4;--line:#38424d;--card:#1b222a;--page:#12171d;
--one:#56b4e9;--two:#e69f00;--bad:#ff8a80;--good:#5fd3a6}}
*{box-sizing:border-box}body{margin:0;padding:1rem;background:var(--page);color:var(--ink);
font:15px/1.45 system-ui,sans-serif;max-width:1180px;margin-inline:auto}
h1{font-size:1.3rem;margin:.2rem 0}h2{font-size:1.1rem;margin:0}p{margin:.2rem 0 .6rem;color:var(--dim)}
section{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:.9rem;margin:1rem 0}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;white-space:nowrap}
th,td{padding:.25rem .7rem .25rem 0;text-align:right;border-bottom:1px solid var(--line)}
th:first-child,td:first-child,td.text,th.text{text-align:left}th{font-weight:600;color:var(--dim)}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(300px,100%),1fr));gap:.8rem}
figure{margin:0}figcaption{font-size:.85rem;color:var(--dim)}svg{width:100%;height:auto;display:block}
svg text{fill:var(--dim);font-size:11px}.axis{stroke:var(--line)}.one{fill:var(--one);stroke:var(--one)}
.two{fill:var(--two);stroke:var(--two)}.area{fill:var(--one);fill-opacity:.3;stroke:var(--one);stroke-width:1.5}
.slower{color:var(--bad);font-weight:600}.faster{color:var(--good)}a{color:var(--one)}
"""


def page(
    report: ProfileReport, earlier: ProfileReport | None, changes: Sequence[OperationChange], tolerance_pct: float
) -> str:
    """Return the page of a profile, and of how it compares with an earlier one."""
    head, *more = head_lines(report)
    parts = [f"<h1>{escape(head)}</h1>", *(f"<p>{escape(line)}</p>" for line in more), _table(report)]
    if earlier is not None:
        parts.append(_changes(head_lines(earlier)[0], changes, tolerance_pct))
    parts += [_operation(each) for each in report.operations]
    if not report.operations:
        parts.append("<p>No operation ended while it ran.</p>")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(head)}</title><style>{STYLE}</style></head><body>{''.join(parts)}</body></html>\n"
    )


def _table(report: ProfileReport) -> str:
    titles = ("operation", "count", "mean ms", "p50", "p95", "p99", "max")
    rows = [
        [
            f'<a href="#{each.operation}">{each.operation}</a>',
            f"{each.times.spans:,}",
            *(cell(value) for value in each.times[1:]),
            escape(waits_text(each)),
            escape(others_text(each)),
        ]
        for each in report.operations
    ]
    return _section("All operations", _rows(titles, ("mean waits, ms", "ended otherwise"), rows))


def _changes(earlier: str, changes: Sequence[OperationChange], tolerance_pct: float) -> str:
    rows = [
        [
            each.operation,
            *(f"{each.before.spans:,}", f"{each.after.spans:,}"),
            *(cell(each.before.p50_ms), cell(each.after.p50_ms), cell(each.before.p95_ms), cell(each.after.p95_ms)),
            change_text(each),
            f'<span class="{each.verdict}">{each.verdict}</span>',
        ]
        for each in changes
    ]
    titles = ("operation", "count before", "now", "p50 ms before", "now", "p95 ms before", "now", "change of p95")
    told = f"<p>The earlier one: {escape(earlier)}. Alike is within {tolerance_pct:g} %.</p>"
    return _section("Beside an earlier one", told + _rows(titles, ("",), rows))


def _section(title: str, content: str) -> str:
    return f"<section><h2>{title}</h2>{content}</section>"


def _rows(titles: Sequence[str], texts: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{title}</th>" for title in titles)
    head += "".join(f'<th class="text">{title}</th>' for title in texts)
    body = "".join(
        "<tr>"
        + "".join(f"<td>{value}</td>" for value in row[: len(titles)])
        + "".join(f'<td class="text">{value}</td>' for value in row[len(titles) :])
        + "</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'


def _operation(figures: OperationFigures) -> str:
    plots = "".join(
        f"<figure>{drawing}<figcaption>{caption}</figcaption></figure>"
        for drawing, caption in (
            (_over_time(figures), "how long, by when they began: median, and the longest"),
            (_histogram(figures), "how many took so long"),
            (_concurrency(figures), "how many went on at a time, at most"),
        )
        if drawing
    )
    times = figures.times
    quantiles = f"median {cell(times.p50_ms)} ms, p95 {cell(times.p95_ms)} ms, p99 {cell(times.p99_ms)} ms"
    told = f"{times.spans:,} done; {quantiles}"
    return (
        f'<section id="{figures.operation}"><h2>{figures.operation}</h2>'
        f'<p>{escape(ABOUT[figures.operation])}. {told}</p><div class="plots">{plots}</div></section>'
    )


class _Axes:
    """The place of values in a drawing: from 0 to the right; upwards from 0, or logarithmic from `bottom`."""

    def __init__(self, right: float, top: float, *, bottom: float = 0.0) -> None:
        self._right = max(right, 1e-9)
        self._is_log = bottom > 0
        self._low = log10(bottom) if self._is_log else 0.0
        self._high = max(log10(top) if self._is_log else top, self._low + 1e-9)

    def x(self, value: float) -> float:
        """Return how far to the right a value is."""
        return round(LEFT + value / self._right * (WIDTH - LEFT - RIGHT), 1)

    def y(self, value: float) -> float:
        """Return how far down a value is."""
        at = log10(max(value, 10**self._low)) if self._is_log else value
        return round(HEIGHT - BOTTOM - (at - self._low) / (self._high - self._low) * (HEIGHT - TOP - BOTTOM), 1)


def _drawing(label: str, shapes: str, ticks: Sequence[tuple[float, str]], marks: Sequence[tuple[float, str]]) -> str:
    """Return a drawing with ticks on the left (places, texts), marks below, and shapes."""
    floor = HEIGHT - BOTTOM
    lines = "".join(
        f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at}" y2="{at}"/>'
        f'<text x="{LEFT - 5}" y="{at + 4}" text-anchor="end">{text}</text>'
        for at, text in ticks
    )
    below = "".join(f'<text x="{at}" y="{floor + 15}" text-anchor="middle">{text}</text>' for at, text in marks)
    name = f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 4}" text-anchor="middle">{label}</text>'
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{lines}{shapes}{below}{name}</svg>'


def _over_time(figures: OperationFigures) -> str:
    bins = figures.over_time
    if not bins:
        return ""
    low = 10 ** _floor(min(each.p50_ms for each in bins))
    high = 10 ** (_floor(max(each.max_ms for each in bins)) + 1)
    right = max(bins[-1].at_s, figures.concurrency[-1].at_s)
    axes = _Axes(right, high, bottom=low)
    shapes = "".join(
        f'<circle class="two" r="1.8" cx="{axes.x(each.at_s)}" cy="{axes.y(each.max_ms)}"/>'
        f'<circle class="one" r="2.4" cx="{axes.x(each.at_s)}" cy="{axes.y(each.p50_ms)}"/>'
        for each in bins
    )
    decades = range(_floor(low), _floor(high) + 1)
    ticks = [(axes.y(10.0**power), _short(10.0**power)) for power in decades]
    return _drawing("seconds since the profile began; upwards ms", shapes, ticks, _seconds(axes, right))


def _histogram(figures: OperationFigures) -> str:
    bins = figures.histogram
    if not bins:
        return ""
    most = max(each.spans for each in bins)
    places = max(len(bins), FEWEST_BARS)
    axes, width = _Axes(places, most), (WIDTH - LEFT - RIGHT) / places
    floor = HEIGHT - BOTTOM
    shapes = "".join(
        f'<rect class="one" x="{axes.x(number)}" y="{axes.y(each.spans)}" width="{max(1.0, width - 2):.1f}" '
        f'height="{floor - axes.y(each.spans):.1f}"><title>'
        f"{each.low_ms:g} to {each.high_ms:g} ms: {each.spans:,}</title></rect>"
        for number, each in enumerate(bins)
    )
    step = max(1, -(-len(bins) // 6))
    marks = [(axes.x(number), _short(bins[number].low_ms)) for number in range(0, len(bins), step)]
    return _drawing("ms", shapes, _counts(axes, most), marks)


def _concurrency(figures: OperationFigures) -> str:
    bins = figures.concurrency
    if not bins:
        return ""
    most = max(each.most for each in bins)
    axes, right = _Axes(bins[-1].at_s, most), bins[-1].at_s
    points = " ".join(f"{axes.x(each.at_s)},{axes.y(each.most)}" for each in bins)
    floor = HEIGHT - BOTTOM
    shapes = f'<polygon class="area" points="{LEFT},{floor} {points} {WIDTH - RIGHT},{floor}"/>'
    return _drawing("seconds since the profile began", shapes, _counts(axes, most), _seconds(axes, right))


def _counts(axes: _Axes, most: int) -> list[tuple[float, str]]:
    values = sorted({0, most} if most < 4 else {0, most // 2, most})
    return [(axes.y(value), f"{value:,}") for value in values]


def _seconds(axes: _Axes, right: float) -> list[tuple[float, str]]:
    return [(axes.x(right * part), f"{right * part:.3g}") for part in (0.0, 0.25, 0.5, 0.75, 0.97)]


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _floor(value: float) -> int:
    """Return the power of ten at or below a value of at least a thousandth."""
    return int(log10(max(value, 0.001)) // 1)
