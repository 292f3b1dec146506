"""Unpacked documentation served on loopback: plain files, and nothing outside their folders."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from corpus.config.check import problems
from corpus.config.load import load_config
from corpus.errors import CorpusError
from corpus.testing.sites import PORT, FileSite, Tree, main, trees
from corpus.testing.web_answer import Answer, Ask
from tests.unit.house import ROOT


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """A folder like bench-data, with one python page and two handbook languages."""
    docs = tmp_path / "tree/usr/share/doc"
    for name in ("python3.11/html", "debian-handbook/html/de-DE", "debian-handbook/html/cs-CZ"):
        (docs / name / "sub").mkdir(parents=True)
        (docs / name / "index.html").write_text(f"<p>{name}</p>", "utf-8")
        (docs / name / "sub" / "index.html").write_text("<p>sub</p>", "utf-8")
    (docs / "secret.txt").write_text("secret", "utf-8")
    (docs / "python3.11/html/log.html.gz").write_bytes(b"\x1f\x8b")
    (docs / "python3.11/html/leak.html").symlink_to(docs / "secret.txt")
    return tmp_path


def _get(site: FileSite, target: str, host: str = "127.20.0.1", **headers: str) -> Answer:
    return site.answer(Ask(host, target, {k.replace("_", "-"): v for k, v in headers.items()}, 1, 1, 0.0, 0.0))


def test_one_address_a_tree(bench: Path) -> None:
    """Python's documentation comes first, then the languages in alphabetical order."""
    assert [(tree.name, tree.address) for tree in trees(bench)] == [
        ("python", "127.20.0.1"),
        ("handbook-cs-CZ", "127.20.0.2"),
        ("handbook-de-DE", "127.20.0.3"),
    ]
    with pytest.raises(CorpusError, match="bench-data"):
        trees(bench / "elsewhere")


def test_files_folders_and_types(bench: Path) -> None:
    """Files, index pages, the missing slash, conditional requests and content types."""
    site = FileSite(tuple(trees(bench)))
    page = _get(site, "/index.html?x=1")
    assert (page.status, page.body) == (200, b"<p>python3.11/html</p>")
    assert dict(page.headers)["Content-Type"] == "text/html"
    assert _get(site, "/").body == page.body
    assert _get(site, "/index.html", if_none_match=dict(page.headers)["ETag"]).status == 304
    assert dict(_get(site, "/sub").headers)["Location"] == "/sub/"
    assert dict(_get(site, "/log.html.gz").headers)["Content-Type"] == "application/gzip"
    assert _get(site, "/index.html", host="127.20.0.3").body == b"<p>debian-handbook/html/de-DE</p>"


@pytest.mark.parametrize(
    "target",
    ["/../../secret.txt", "/%2e%2e/%2e%2e/secret.txt", "/leak.html", "/a%00b", "/nothing", "*", "/" + "x" * 5000],
    ids=["up", "up-escaped", "link-out", "nul", "absent", "star", "long"],
)
def test_nothing_else_is_served(bench: Path, target: str) -> None:
    """Paths that climb out, links that lead out and what is not there are 404."""
    assert _get(FileSite((Tree("python", "127.20.0.1", bench / "tree/usr/share/doc/python3.11/html"),)), target).status == 404


def test_serves_while_a_command_runs(bench: Path) -> None:
    """With a command after `--` the server lives as long as the command, and returns its exit code."""
    code = "import urllib.request as r, sys; sys.exit(7 if b'python' in r.urlopen(sys.argv[1]).read() else 1)"
    port = _free_port()
    assert main([str(bench), "--port", str(port), "--", sys.executable, "-c", code, f"http://127.20.0.1:{port}/"]) == 7


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.20.0.1", 0))
        return int(probe.getsockname()[1])


def test_shipped_configurations() -> None:
    """The public one lacks nothing but a contact; the documentation one lacks nothing and names the right port."""
    public = problems(load_config(str(ROOT / "configs/public.toml")), fetching=True)
    assert [problem.key for problem in public] == ["crawl.contact"]
    assert problems(load_config(str(ROOT / "configs/docs-site.toml")), fetching=True) == []
    seeds = [line for line in (ROOT / "configs/seeds/docs-site.txt").read_text("utf-8").splitlines() if not line.startswith("#")]
    assert seeds == [f"http://127.20.0.{number}:{PORT}/index.html" for number in range(1, 28)]
