"""Speed and size of the opt-out reader, in CPU time of this process, so that a busy machine changes nothing."""

from __future__ import annotations

import statistics
import tarfile
import time
from pathlib import Path

import pytest

from corpus.optout.agents import AGENTS
from corpus.optout.authority import AuthorityFiles, AuthorityRules, compile_authority
from corpus.optout.filestate import file_state
from corpus.optout.match import compile_pattern, target_of
from corpus.optout.settings import OptoutSettings

URLS = [
    f"https://ex.com{path}"
    for path in (
        "/2024/05/17/some-article.html",
        "/products/item-1234",
        "/search?q=x+y&page=2",
        "/login?next=%2Fhome",
        "/en/",
        "/about",
        "/wiki/A_B#c",
    )
]
DECISIONS_PER_CPU_S = 100_000
PACKED_MEDIAN_MAX = 1_500


def _rules(body: bytes) -> AuthorityRules:
    return compile_authority(
        AuthorityFiles(robots=file_state(body, url="https://ex.com/robots.txt", read_at=0.0)), OptoutSettings(), "CorpusBot"
    )


def _per_cpu_s(rules: list[AuthorityRules], rounds: int) -> float:
    started = time.process_time()
    for _ in range(rounds):
        for each in rules:
            for url in URLS:
                each.judge(url, 0.0)
    return rounds * len(rules) * len(URLS) / (time.process_time() - started)


def _best(rules: list[AuthorityRules], rounds: int) -> float:
    for each in rules:
        each.judge(URLS[0], 0.0)
    return max(_per_cpu_s(rules, rounds) for _ in range(4))


def test_decisions_with_the_full_agent_table() -> None:
    """At least 100,000 decisions per CPU-second where a file names every agent of the table, and rules and signals beside."""
    names = [name for name, _ in AGENTS.purposes.values()]
    block = "\n".join(f"User-agent: {name}" for name in names) + "\nDisallow: /private\n\n"
    own = "User-agent: *\nDisallow: /admin\nAllow: /admin/x\nDisallow: /*?s=\nContent-Signal: search=yes, ai-input=no\n"
    assert _best([_rules((block + own).encode())], 3_000) >= DECISIONS_PER_CPU_S


def test_decisions_and_size_on_real_files(test_data: Path) -> None:
    """The same over real files, and a typical one is kept in about half a kilobyte."""
    archive = test_data / "robots" / "protego-real-robots-1.tar.gz"
    if not archive.is_file():
        pytest.skip(f"no {archive.name} in the third-party test data")
    with tarfile.open(archive) as tar:
        bodies = [handle.read() for member in tar.getmembers()[::10] if member.isfile() and (handle := tar.extractfile(member))]
    rules = [_rules(body) for body in bodies]
    assert statistics.median(each.packed_bytes for each in rules) <= PACKED_MEDIAN_MAX
    assert _best(rules, 20) >= DECISIONS_PER_CPU_S


@pytest.mark.parametrize("pattern", ["/*a*b{n}*c*d$", "/" + "*a" * 60 + "{n}$", "/*{n}*?*=*&*%3D"])
def test_sixty_wildcards_on_a_long_path(pattern: str) -> None:
    """Sixty wildcard rules against a path of 2,000 characters: under a millisecond."""
    rules = _rules(("User-agent: *\n" + "".join(f"Disallow: {pattern.format(n=n)}\n" for n in range(60))).encode())
    url = "https://ex.com/" + "abcd" * 500
    rules.judge(url, 0.0)
    costs = []
    for _ in range(9):
        started = time.process_time()
        for _ in range(10):
            rules.judge(url, 0.0)
        costs.append((time.process_time() - started) / 10)
    assert min(costs) < 0.001


def test_matching_is_linear() -> None:
    """Doubling the path no more than about doubles the work, for the pattern that makes backtracking matchers explode."""
    pattern = compile_pattern("/" + "*a" * 200 + "b$")
    assert pattern is not None

    def cost(length: int) -> float:
        target = target_of("https://ex.com/" + "a" * length)
        samples = []
        for _ in range(7):
            started = time.process_time()
            for _ in range(20):
                pattern.under(target, both=False)
            samples.append(time.process_time() - started)
        return min(samples)

    assert cost(80_000) < 6 * cost(20_000) + 0.01


def test_the_largest_file_is_quick() -> None:
    """Half a megabyte of rules, and of groups, is read in a second or two, and judged in milliseconds."""
    for unit in ("Disallow: /{n}/*x*y\n", "User-agent: GPTBot\nDisallow: /{n}\n", "User-agent: b{n}\nFoo: bar\n"):
        body = ("User-agent: *\n" + "".join(unit.format(n=n) for n in range(512_000 // len(unit)))).encode()
        started = time.process_time()
        rules = _rules(body)
        rules.judge(URLS[0], 0.0)
        assert time.process_time() - started < 4.0
        started = time.process_time()
        rules.judge(URLS[1], 0.0)
        assert time.process_time() - started < 0.2
