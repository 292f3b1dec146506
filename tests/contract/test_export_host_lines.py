"""Host lines through a whole corpus: measured once a snapshot, cut and judged by a policy, seen by every verb that explains."""

from __future__ import annotations

import datetime
import json
import uuid
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests import release_kit as rk
from tests.demo_corpus import corpus_cli, project_of

POLICY = """
name = "lines"
inherit = "permissive"
cut = ["host-line"]
[rules.mostly_repeated]
signal = "host_line_char_ratio"
max = {limit}
"""


NOTICE = "This notice stands on every page of the archive of letters."
SPONSOR = "Our readers pay for these pages, and we thank them for it."


def _response(url: str, kind: str, body: str) -> bytes:
    """One WARC record, read a moment ago."""
    date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    block = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}; charset=utf-8\r\n\r\n{body}".encode()
    head = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <{uuid.uuid4().urn}>\r\nWARC-Date: {date}\r\nWARC-Target-URI: {url}\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return head.encode() + block + b"\r\n\r\n"


def _page(host: str, number: int, sentences: int) -> bytes:
    """A page whose text is mostly its own, or (with few sentences) mostly the host's."""
    own = [
        f"Letter {number} of {host} was written on day {i}, when {rk.text(997 * len(host) + 97 * number + i, 12)} came."
        for i in range(sentences)
    ]
    body = "".join(f"<p>{line}</p>" for line in [NOTICE, *own, SPONSOR])
    return _response(
        f"https://{host}/{number}", "text/html", f"<html lang=en><title>Letter {number}</title><body><article>{body}</article>"
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages of two hosts taken in from an archive, and released with a policy that cuts host lines and drops what has too many."""
    folder = tmp_path_factory.mktemp("lines") / "corpus"
    folder.mkdir()
    hosts = {"letters.example": 6, "notes.example": 2}  # too few pages of the second for any host line
    pages = b"".join(_page(host, n, 1 if n == 5 else 9) for host, number in hosts.items() for n in range(number))
    (folder / "pages.warc").write_bytes(pages)
    robots = b"".join(_response(f"https://{host}/robots.txt", "text/plain", "User-agent: *\nAllow: /\n") for host in hosts)
    (folder / "robots.warc").write_bytes(robots)
    config = folder / "corpus.toml"
    config.write_text(
        '[corpus]\nname = "lines"\n[extract]\nprofile = "fast"\n[filter]\npolicy = "lines.toml"\nhost_line_pages = 3\n', "utf-8"
    )
    (folder / "lines.toml").write_text(POLICY.format(limit=0.3), "utf-8")
    for verb in (
        ("ingest", "-c", config, folder / "pages.warc", "--robots", folder / "robots.warc"),
        ("process", "-c", config),
        ("export", "-c", config, "--name", "lines"),
    ):
        said = corpus_cli(*verb)
        assert said.code == 0, said.err
    return folder


def _sql(folder: Path, query: str) -> list[list[object]]:
    return corpus_cli("sql", "-c", folder / "corpus.toml", query, "--json").json["rows"]


def test_host_lines_are_cut_and_carried(folder: Path) -> None:
    """No released text has a line that three pages of its host had; the signals stand in the release."""
    (lines,) = folder.glob("snapshots/*/host_lines.parquet")
    spans = {row["id"]: row for row in pq.read_table(lines).to_pylist()}
    rows = _sql(folder, "SELECT r.id, r.text, d.text, r.signals FROM records r JOIN documents d USING (id)")
    touched = 0
    for name, released, whole, signals in rows:
        row = spans[str(name)]
        assert isinstance(signals, dict)
        assert signals["host_lines"] == row["host_lines"]
        assert signals["host_line_ratio"] == row["host_line_ratio"]
        gone = [str(whole)[a:b] for a, b in zip(row["starts"], row["ends"], strict=True)]
        assert all(line not in str(released).split("\n") for run in gone for line in run.split("\n") if line.strip())
        touched += bool(gone)
    assert (touched, len(rows)) == (5, 7)
    (record,) = project_of(folder).commits.list("host-lines")
    assert record.rows == {"texts": 8, "lines": 2, "touched": 6}


def test_a_rule_over_them_is_seen_by_every_verb(folder: Path) -> None:
    """Decisions, funnel, card, `why`, `sample --dropped` and flips: rule, measured share and limit."""
    dropped = _sql(folder, "SELECT url, id, measured FROM documents WHERE drop_rule = 'mostly_repeated' ORDER BY url")
    assert dropped
    (lines,) = folder.glob("snapshots/*/host_lines.parquet")
    shares = {row["id"]: row["host_line_char_ratio"] for row in pq.read_table(lines).to_pylist()}
    assert all(shares[name] == measured > 0.3 for _, name, measured in dropped)
    config = folder / "corpus.toml"
    told = corpus_cli("why", "-c", config, str(dropped[0][0]), "--json").json
    assert told["verdict"] == "dropped"
    assert "mostly_repeated" in told["sentence"]
    sampled = corpus_cli("sample", "-c", config, "--dropped", "--rule", "mostly_repeated", "-n", "99", "--json").json
    assert {row["url"] for row in sampled["rows"]} == {row[0] for row in dropped}
    flips = corpus_cli("sample", "-c", config, "--flips", "mostly_repeated=off", "--json").json
    assert flips["newly_kept"] == {"mostly_repeated": len(dropped)}
    manifest = json.loads((folder / "releases/lines/manifest.json").read_text("utf-8"))
    assert manifest["rules"]["mostly_repeated"] == len(dropped)
    card = (folder / "releases/lines/README.md").read_text("utf-8")
    assert "| mostly\\_repeated | 1 |" in card
    assert "Cut from the texts: host\\-line" in card


def test_the_release_is_made_again_byte_for_byte_and_verified(folder: Path) -> None:
    """Replay compares lines anew; `verify` knows the file, misses it when it is gone, and a damaged one is made again."""
    config = folder / "corpus.toml"
    assert corpus_cli("replay", "-c", config, "lines").code == 0
    assert corpus_cli("verify", "-c", config).code == 0
    (lines,) = folder.glob("snapshots/*/host_lines.parquet")
    good = lines.read_bytes()
    lines.write_bytes(good[:-9])
    assert corpus_cli("verify", "-c", config).code == 1
    assert corpus_cli("verify", "-c", config, "--repair").code in (0, 1)
    assert not lines.exists()
    assert corpus_cli("export", "-c", config, "--name", "lines").code == 0
    assert lines.read_bytes() == good
    assert corpus_cli("verify", "-c", config).code == 0


def test_a_later_snapshot_over_the_same_documents_takes_them_over(folder: Path) -> None:
    """Another limit is another snapshot and release, but the lines are compared once."""
    (folder / "lines.toml").write_text(POLICY.format(limit=0.5), "utf-8")
    said = corpus_cli("export", "-c", folder / "corpus.toml", "--name", "looser")
    assert said.code == 0, said.err
    files = list(folder.glob("snapshots/*/host_lines.parquet"))
    assert len(files) == 2
    assert files[0].read_bytes() == files[1].read_bytes()
    assert len(list(project_of(folder).commits.list("host-lines"))) == 1
    assert corpus_cli("verify", "-c", folder / "corpus.toml").code == 0


@pytest.mark.parametrize("text", ['cut = ["host-line"]', '[rules.x]\nsignal = "host_lines"\nmax = 3'])
def test_a_policy_that_speaks_of_what_is_not_measured_is_refused(tmp_path: Path, text: str) -> None:
    """Without `filter.host_line_pages` nothing would be cut and the rule would keep everything: a usage error names the key."""
    (tmp_path / "lines.toml").write_text(f'inherit = "permissive"\n{text}\n', "utf-8")
    (tmp_path / "corpus.toml").write_text('[corpus]\nname = "x"\n[filter]\npolicy = "lines.toml"\n', "utf-8")
    said = corpus_cli("check", "-c", tmp_path / "corpus.toml")
    assert said.code == 2
    assert "filter.host_line_pages" in said.out
