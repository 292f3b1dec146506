"""`corpus audit` reads other servers' logs, names every gap that was too short, and says what a log cannot show."""

from __future__ import annotations

import gzip
import json
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.app.access_log import Reading, Spelling, read_hits
from corpus.app.audit import audit, by_start
from corpus.errors import NothingDone, UsageError
from tests.demo_corpus import corpus_cli

AGENT = "CorpusBot/1.0 (+https://example.org/bot)"


def _combined(second: int, path: str = "/a", agent: str = AGENT, tail: str = "", vhost: str = "") -> str:
    head = f"{vhost} " if vhost else ""
    return f'{head}203.0.113.9 - - [10/Oct/2026:13:{second // 60:02d}:{second % 60:02d} +0000] "GET {path} HTTP/1.1" 200 512 "-" "{agent}"{tail}'


def _log(folder: Path, *lines: str) -> str:
    path = folder / "access.log"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_a_combined_log_in_whole_seconds_names_only_what_nothing_excuses(tmp_path: Path) -> None:
    """2 s due: contacts a second apart may have been 1.99 s apart, so they pass; two in the same second do not."""
    log = _log(tmp_path, *(_combined(s) for s in (0, 2, 3, 3, 9)), _combined(4, agent="Mozilla/5.0"))
    found = audit(log, gap_s=2.0)
    assert (found.lines, found.contacts, found.too_soon, found.ok) == (6, 5, 1, False)
    (violation,) = found.violations
    assert (violation.line, violation.after_line, violation.gap_s, violation.due_s) == (4, 3, 0.0, 2.0)
    assert any("whole seconds" in limit for limit in found.limits)
    assert any("without a duration" in limit for limit in found.limits)


def test_a_row_of_short_gaps_is_found_in_whole_seconds(tmp_path: Path) -> None:
    """2 s due and a contact every second for a minute: one pair may be excused by the clock, sixty may not."""
    found = audit(_log(tmp_path, *(_combined(s) for s in range(60))), gap_s=2.0)
    assert found.too_soon >= 25
    assert found.violations[0].line <= 4


@given(st.lists(st.floats(0, 3), min_size=2, max_size=30), st.floats(0, 0.999))
def test_who_keeps_the_gap_is_never_accused(waits: list[float], start: float) -> None:
    """Contacts at least 2 s apart, logged in whole seconds: whatever the fractions were, no violation is named."""
    moments = list(accumulate(waits, lambda at, wait: at + 2.0 + wait, initial=start))
    with TemporaryDirectory() as folder:
        assert audit(_log(Path(folder), *(_combined(int(at)) for at in moments)), gap_s=2.0).ok


def test_durations_count_the_gap_from_the_end(tmp_path: Path) -> None:
    """nginx's time is the end of an answer, Apache's the start: with a duration the gap runs from end to start either way."""
    log = _log(tmp_path, _combined(0, tail=" 0.100"), _combined(9, tail=" 7.000"), _combined(20, tail=" 0.100"))
    assert audit(log, gap_s=5.0).violations[0].gap_s == pytest.approx(2.0)
    apache = _log(tmp_path, _combined(0, tail=" 7000000"), _combined(9, tail=" 100000"), _combined(20, tail=" 100"))
    found = audit(apache, gap_s=5.0, spelling=Spelling(1e-6, starts=True))
    assert [(v.line, v.gap_s) for v in found.violations] == [(2, pytest.approx(2.0))]


def test_hosts_domains_and_servers_are_groups(tmp_path: Path) -> None:
    """Two virtual hosts of a domain: each keeps its gap, the domain and the server see one contact a second."""
    lines = [_combined(s, vhost=f"{'ab'[s % 2]}.site.test:443") for s in range(40)]
    log = _log(tmp_path, *lines)
    assert audit(log, gap_s=2.0).ok
    domain = audit(log, gap_s=3.0, group="domain")
    assert domain.too_soon == 39
    assert domain.violations[0].group == "site.test"
    assert audit(log, gap_s=3.0, group="server").too_soon == 39


def test_operators_are_told_apart(tmp_path: Path) -> None:
    """Two people running the same crawler do not answer for each other's gaps."""
    other = "CorpusBot/2.0 (+mailto:crawl@example.net)"
    log = _log(tmp_path, *(_combined(s, agent=AGENT if s % 6 == 0 else other) for s in range(0, 60, 3)))
    found = audit(log, gap_s=5.0)
    assert found.ok
    assert set(found.operators) == {"https://example.org/bot", "mailto:crawl@example.net"}


def test_json_lines_of_several_servers(tmp_path: Path) -> None:
    """nginx's escape=json, Caddy's nested request, and ISO times; milliseconds tell a gap that seconds would hide."""
    lines = [
        json.dumps({"msec": "1700000000.100", "request_time": "0.050", "host": "a.test", "request_uri": "/1", "status": 200, "http_user_agent": AGENT}),
        json.dumps({"ts": 1700000001.4, "duration": 0.02, "status": 200, "request": {"host": "a.test", "uri": "/2", "headers": {"User-Agent": [AGENT]}}}),
        json.dumps({"time_iso8601": "2023-11-14T22:13:24.500Z", "host": "a.test", "uri": "/3", "user_agent": AGENT}),
    ]  # fmt: skip
    found = audit(_log(tmp_path, *lines), gap_s=2.0)
    assert [(v.line, v.host, v.target) for v in found.violations] == [(2, "a.test", "/2")]
    assert found.violations[0].gap_s == pytest.approx(1.28, abs=0.002)


def test_refused_requests_are_named_with_their_line(tmp_path: Path) -> None:
    """With the robots.txt that was in force, a request for what it refuses is a violation; robots.txt itself never is."""
    robots = b"User-agent: *\nDisallow: /private/\n"
    log = _log(tmp_path, _combined(0, "/robots.txt"), _combined(10, "/private/x"), _combined(20, "/public"))
    found = audit(log, robots=robots)
    assert (found.too_soon, found.forbidden, found.ok) == (0, 1, False)
    assert (found.refused[0].line, found.refused[0].rule_line) == (2, 2)


def test_hostile_and_foreign_lines_are_counted_not_trusted(tmp_path: Path) -> None:
    """Endless lines, broken JSON, NULs, bad times: each is one unread line, and the rest is judged."""
    path = tmp_path / "access.log.gz"
    lines = [
        b"{" * 50_000,
        b'{"time": "NaN"}',
        b"\0" * 200_000,
        _combined(0).encode(),
        b"[" * 70_000,
        b'x - - [never] "GET',
        _combined(9).encode(),
    ]
    path.write_bytes(gzip.compress(b"\n".join(lines)))
    found = audit(str(path))
    assert (found.contacts, found.unread, found.ok) == (2, 5, True)
    with pytest.raises(UsageError, match="cannot be read"):
        audit(str(tmp_path / "nowhere.log"))
    with pytest.raises(UsageError, match="regular expression"):
        audit(str(path), pattern="(")
    with pytest.raises(NothingDone, match="none of its 7 lines"):
        audit(str(path), agent="OtherBot")


def test_lines_are_judged_by_when_requests_began(tmp_path: Path) -> None:
    """A slow answer is written after quicker ones that began later; memory holds only what may still be overtaken."""
    log = _log(
        tmp_path, _combined(10, "/quick", tail=" 0.100"), _combined(12, "/slow", tail=" 10.000"), _combined(30, tail=" 0.100")
    )
    hits = list(by_start(read_hits(log, Reading(), Spelling())))
    assert [hit.target for hit in hits] == ["/slow", "/quick", "/a"]
    found = audit(log, gap_s=2.0)
    assert [(v.line, v.after_line) for v in found.violations] == [(1, 2)], "they overlapped"


def test_the_verb_exits_with_what_it_found(tmp_path: Path) -> None:
    """0 without a violation, 1 with one (named with line and host), 3 when the crawler is not in the log; `--json` is one document."""
    log = _log(tmp_path, _combined(0), _combined(1), _combined(9))
    assert corpus_cli("audit", log, "--gap", "1s", "--host", "www.site.test").code == 0
    said = corpus_cli("audit", log, "--gap", "5s", "--host", "www.site.test")
    assert said.code == 1
    assert "line 2: www.site.test: 1.000 s after line 1, due 5 s" in said.out
    told = corpus_cli("audit", log, "--gap", "5s", "--json")
    assert (told.code, told.json["ok"], told.json["too_soon"]) == (1, False, 1)
    assert corpus_cli("audit", log, "--agent", "Nobody").code == 3
    assert corpus_cli("audit", log, "--gap", "soon").code == 2
