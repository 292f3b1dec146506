"""Google's own expectations, and Google's parser on real files: every difference is listed with its reason."""

from __future__ import annotations

import json
import re
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from corpus.model import Access
from corpus.optout.authority import AuthorityFiles, compile_authority
from corpus.optout.filestate import file_state
from corpus.optout.robots import parse_robots
from corpus.optout.settings import OptoutSettings
from corpus.url.canonical import fetch_url
from tests.conformance.google_oracle import GoogleOracle
from tests.conformance.textproto import parse_textproto

HERE = Path(__file__).parent
SETTINGS = OptoutSettings(peers="off")
FAST_FILES = 200
DISAGREEMENT_MAX = 0.0005


def _members(archive: Path) -> list[tuple[str, bytes]]:
    if not archive.is_file():
        pytest.skip(f"no {archive.name} in the third-party test data")
    with tarfile.open(archive) as tar:
        return sorted((m.name, handle.read()) for m in tar.getmembers() if m.isfile() and (handle := tar.extractfile(m)))


def _allows(body: bytes, agent: str, url: str) -> bool:
    return compile_authority(AuthorityFiles(robots=file_state(body)), SETTINGS, agent).judge(url, 0.0).access is Access.YES


def test_spec_test(test_data: Path) -> None:
    """400 expectations of google/robotstxt-spec-test: we differ exactly where the committed table says, and why."""
    listed = json.loads((HERE / "optout_google_differences.json").read_text(encoding="utf-8"))
    found: list[dict[str, str]] = []
    total = 0
    for name, text in _members(test_data / "robots" / "robotstxt-spec-test.tar.gz"):
        if not name.endswith(".textproto"):
            continue
        for test in parse_textproto(text.decode("utf-8"))["tests"]:
            body = test.get("robotstxt", [b""])[0]
            for number, wanted in enumerate(test["test_expectations"]):
                url, agent = wanted["testurl"][0].decode(), wanted["useragent"][0].decode()
                total += 1
                ours = "ALLOWED" if _allows(body, agent, url) else "DISALLOWED"
                if ours != wanted["expected_outcome"][0]:
                    found.append(
                        {"file": name.rpartition("/")[2], "number": str(number), "agent": agent, "url": url, "ours": ours}
                    )
    assert total == 400
    assert [{key: row[key] for key in row if key != "why"} for row in listed] == found
    assert all(len(row["why"]) > 20 for row in listed)


_EVERYWHERE = (
    "/", "/index.html", "/about", "/about/team", "/a/b?c=d", "/search?q=x+y&page=2", "/robots", "/2024/05/17/some-article.html", "/products/item-1234",
    "/img/a.png", "/wp-content/uploads/2020/01/a.jpg", "/wp-admin/admin-ajax.php", "/user/login?next=%2Fhome", "/en/", "/fr/page", "/tag/x/",
    "/category/news/page/3/", "/feed/", "/cgi-bin/x", "/api/v1/items?id=1", "/~joe/", "/%7Ejoe/a", "/caf%C3%A9/menu", "/news/?hl=en",
)  # fmt: skip


def _questions(body: bytes) -> tuple[list[str], list[str]]:
    """Agents to ask for (ours, and some that the file names) and URLs: ordinary ones, and ones near the file's own patterns."""
    groups = parse_robots(body).groups
    raw = (agent.raw.partition(":")[2].strip() for group in groups for agent in group.agents)
    named = sorted({match[0] for name in raw if (match := re.match(r"[A-Za-z_-]+", name))})
    patterns = [rule.pattern for group in groups for rule in group.rules if rule.pattern.startswith(("/", "*"))]
    paths = list(_EVERYWHERE)
    for pattern in patterns[:: max(1, len(patterns) // 6)][:6]:
        start = ("/" if pattern.startswith("*") else "") + pattern
        bare = start.rstrip("$")
        paths += [bare.replace("*", "zz"), bare.replace("*", "") + "x", bare.replace("*", "a/b") + "/y?z=1"]
    readable = (path.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for path in dict.fromkeys(paths))
    urls = [url for path in readable if (url := fetch_url(f"https://ex.com{path}"))]
    return ["CorpusBot", *named[:40:4]], urls


def _compare(members: list[tuple[str, bytes]]) -> tuple[int, Counter[str]]:
    asked, differing = 0, Counter[str]()
    for name, body in members:
        oracle = GoogleOracle(body)
        agents, urls = _questions(body)
        for agent in agents:
            rules = compile_authority(AuthorityFiles(robots=file_state(body)), SETTINGS, agent)
            for url in urls:
                asked += 1
                differing[name] += (rules.judge(url, 0.0).access is Access.YES) != oracle.allows(agent, url)
    return asked, +differing


def test_some_real_files(test_data: Path) -> None:
    """200 real robots.txt files, spread over the 1,500: no disagreement with Google's parser that is not explained."""
    members = _members(test_data / "robots" / "protego-real-robots-1.tar.gz")
    _, differing = _compare(members[:: len(members) // FAST_FILES])
    explained = json.loads((HERE / "optout_real_differences.json").read_text(encoding="utf-8"))
    assert set(differing) <= set(explained)


@pytest.mark.slow
def test_all_real_files(test_data: Path) -> None:
    """All 1,500: at most 0.05 % of the questions get another answer, and every such file stands in the table."""
    asked, differing = _compare(_members(test_data / "robots" / "protego-real-robots-1.tar.gz"))
    explained = json.loads((HERE / "optout_real_differences.json").read_text(encoding="utf-8"))
    print(f"{asked} questions, {sum(differing.values())} differences ({sum(differing.values()) / asked:.4%})")
    assert set(differing) == set(explained)
    assert sum(differing.values()) / asked <= DISAGREEMENT_MAX
    assert all(len(why) > 20 for why in explained.values())
