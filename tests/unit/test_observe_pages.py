"""The look that the status page and the report share: escaping by construction, charts that lose no peak, colours one can read."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from corpus.model import FunnelStep
from corpus.observe import charts, tables
from corpus.observe.markup import Markup, asset, crawled, el
from corpus.observe.metrics import METRICS
from tests.unit.house import ROOT

ANY_TEXT = st.text(st.characters(codec=None), max_size=60)
"""Lone surrogates and control characters too."""


class _Reader(HTMLParser):
    """What a browser's parser makes of it."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def read(markup: str) -> _Reader:
    reader = _Reader()
    reader.feed(markup)
    reader.close()
    return reader


@given(ANY_TEXT, ANY_TEXT)
def test_text_stays_text(inside: str, attribute: str) -> None:
    """Whatever the text, one element with one attribute comes out, and printable text comes out as it went in."""
    seen = read(el("p", inside, title=attribute))
    assert [tag for tag, _ in seen.tags] == ["p"]
    assert list(seen.tags[0][1]) == ["title"]
    if inside.isprintable():
        assert seen.text == inside
    el("p", inside).encode("utf-8")


@given(ANY_TEXT)
def test_crawled_text_in_tables_and_funnels_is_text(text: str) -> None:
    """A code, a host or a reason that is markup makes no element that was not there for plain text."""

    def elements(word: str) -> list[str]:
        made = [
            tables.named("caption", ("host", "n", "why"), [(word, 1, word)], lambda host: "/host?name=x"),
            tables.ranked("caption", {word or "x": 3}),
            tables.funnel([FunnelStep("known", 5, 3, {word or "x": 2})]),
            tables.facts([(word, crawled(word))]),
            charts.lines(word, [(word, [(0, 1), (1, 2)]), ("b", [(0, 1), (1, 0)])]),
            charts.histogram(word, [(word, 2), (word, 0)]),
        ]
        return [tag for markup in made for tag, _ in read(markup).tags]

    assert elements(text) == elements("plain")


@pytest.mark.parametrize("to", ["http://evil.test/", "//evil.test/", "javascript:alert(1)", "data:text/html,x", " /x", ""])
def test_links_stay_in_the_page(to: str) -> None:
    """No link can lead to another server or run anything: making one is an error."""
    with pytest.raises(ValueError, match="leads out"):
        el("a", "x", href=to)
    assert el("a", "x", href="/host?name=a") == '<a href="/host?name=a">x</a>'


def test_only_our_own_elements_pass_unescaped() -> None:
    """A text that was joined to markup is text again."""
    assert el("p", el("b", "x")) == "<p><b>x</b></p>"
    assert el("p", f"{el('b', 'x')}") == "<p>&lt;b&gt;x&lt;/b&gt;</p>"
    assert isinstance(el("p"), Markup)


@given(st.lists(st.floats(0, 1e9, allow_nan=False), max_size=40))
@example([0.0] * 900 + [7.0] + [1.0] * 99)
@example([float(n) for n in range(1_201)])
def test_thinning_keeps_the_peak_and_the_end(values: list[float]) -> None:
    """However long the run: at most so many points, in order, the highest and the last among them."""
    points = [(float(n), value) for n, value in enumerate(values)]
    kept = list(charts.thinned(points))
    assert len(kept) <= charts.POINTS + 1
    assert kept == sorted(kept)
    if points:
        assert max(y for _, y in kept) == max(values)
        assert kept[-1] == points[-1]


@given(st.lists(st.tuples(st.floats(0, 2e9), st.floats(0, 1e12)), max_size=40))
def test_a_chart_stays_inside_its_frame(points: list[tuple[float, float]]) -> None:
    """Every coordinate lies in the box, whatever the numbers."""
    drawn = charts.lines("t", [("a", sorted(points))])
    for path in re.findall(r' d="([^"]*)"', drawn):
        numbers = [float(n) for n in re.findall(r"-?\d+(?:\.\d+)?", path)]
        assert all(-0.1 <= n <= 420.1 for n in numbers)


def test_charts_speak_to_those_who_do_not_see_them() -> None:
    """Each is an image with a sentence; bars beside numbers are hidden from readers."""
    drawn = charts.lines("pages", [("pages", [(0, 1), (60, 5)])])
    (svg,) = [attributes for tag, attributes in read(drawn).tags if tag == "svg"]
    assert svg["role"] == "img"
    assert "pages: now 5, at most 5" in str(svg["aria-label"])
    assert 'aria-hidden="true"' in charts.bar(0.5)


def _luminance(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_can_be_read(scheme: str) -> None:
    """Text and links have a contrast of at least 4.5 with what they stand on (WCAG AA), lines of charts at least 3."""
    blocks = re.findall(r":root \{(.*?)\}", asset("look.css"), re.DOTALL)
    colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", blocks[0 if scheme == "light" else 1]))

    def contrast(a: str, b: str) -> float:
        low, high = sorted((_luminance(colours[a]), _luminance(colours[b])))
        return (high + 0.05) / (low + 0.05)

    for name in ("ink", "soft", "accent", "good", "warn", "bad"):
        assert contrast(name, "paper") >= 4.5, name
        assert contrast(name, "card") >= 4.5, name
    assert contrast("ink", "warn-soft") >= 4.5
    for name in ("second", "third", "fourth"):
        assert contrast(name, "paper") >= 3, name


def test_assets_load_nothing() -> None:
    """Neither the style sheet nor the script names another address, and both are small."""
    for name in ("look.css", "status.js"):
        text = asset(name)
        assert not re.search(r"https?:|//[a-z]+\.|@import|url\(", text), name
        assert len(text) < 12_000


DEPLOY = ROOT / "deploy"
_NAME = re.compile(r"\bcorpus_[a-z_]+\b")


def _expressions() -> dict[str, list[str]]:
    """Every PromQL expression of the example files."""
    alerts = yaml.safe_load((DEPLOY / "prometheus-alerts.yml").read_text("utf-8"))
    board = json.loads((DEPLOY / "grafana-dashboard.json").read_text("utf-8"))
    notes = [note["expr"] for note in board["annotations"]["list"] if "expr" in note]
    return {
        "alerts": [rule["expr"] for group in alerts["groups"] for rule in group["rules"]],
        "dashboard": notes + [target["expr"] for panel in board["panels"] for target in panel["targets"]],
    }


def test_deploy_files_speak_of_metrics_that_exist() -> None:
    """Every metric, label and label value in the dashboard and the alerts is one that `/metrics` has; counters are only ever rated."""
    for file, expressions in _expressions().items():
        assert expressions, file
        for expression in expressions:
            names = _NAME.findall(expression)
            assert names or expression.startswith("up{job="), expression
            assert expression.count("(") == expression.count(")"), expression
            for name in names:
                assert name in METRICS, expression
                if METRICS[name].kind == "counter":
                    assert re.search(rf"rate\({name}(?:\{{[^}}]*\}})?\[\d+[mh]\]\)", expression), expression
            for name, selector in re.findall(r"\b(corpus_[a-z_]+)\{([^}]*)\}", expression):
                labels = dict(METRICS[name].labels)
                for label, how, value in re.findall(r'([a-z_]+)(=~|=)"([^"]*)"', selector):
                    values = value.split("|") if how == "=~" else [value]
                    assert set(values) <= set(labels[label]), expression
            for grouped in re.findall(r"by \(([a-z_, ]+)\)", expression):
                labels = dict(METRICS[names[0]].labels)
                assert {label.strip() for label in grouped.split(",")} <= set(labels), expression


def test_every_metric_is_shown_somewhere() -> None:
    """A metric that no panel and no alert needs is one nobody would miss."""
    used = {name for expressions in _expressions().values() for expression in expressions for name in _NAME.findall(expression)}
    assert set(METRICS) - used == {"corpus_build_info"}


def test_alerts_say_what_to_do() -> None:
    """Each has a severity, a summary and an action; the scrape finds the rules and the page's own port."""
    alerts = yaml.safe_load((DEPLOY / "prometheus-alerts.yml").read_text("utf-8"))
    rules = [rule for group in alerts["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert rule["labels"]["severity"] in ("info", "warning", "critical")
        assert {"summary", "action"} <= set(rule["annotations"])
    scrape = yaml.safe_load((DEPLOY / "prometheus.yml").read_text("utf-8"))
    from corpus.app.status_server import HOST, PORT

    assert scrape["scrape_configs"][0]["static_configs"][0]["targets"] == [f"{HOST}:{PORT}"]
    assert all(Path(DEPLOY, name).is_file() for name in scrape["rule_files"])


def test_the_dashboard_is_whole() -> None:
    """Panels have ids of their own, do not overlap, and take the data source from the board's variable."""
    board = json.loads((DEPLOY / "grafana-dashboard.json").read_text("utf-8"))
    taken: set[tuple[int, int]] = set()
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    for panel in board["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
        assert panel["datasource"]["uid"] == "${datasource}"
