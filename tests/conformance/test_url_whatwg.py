"""The web platform tests' URL and IDNA vectors, and crawler-commons' odd URLs: we agree, less our documented drops."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

from corpus.url.canonical import canonical_url, fetch_url
from corpus.url.host import host_of, registered_domain


def _cases(test_data: Path, name: str) -> list[dict[str, Any]]:
    return [case for case in json.loads((test_data / "url" / "wpt" / name).read_text("utf-8")) if isinstance(case, dict)]


def _expected(case: dict[str, Any]) -> str | None:
    if case.get("failure") or case["protocol"] not in {"http:", "https:"}:
        return None
    return f"{case['protocol']}//{case['host']}{case['pathname']}{'?' if case['href'].partition('#')[0].endswith('?') else ''}{case['search']}"


def test_fetch_form_agrees_with_the_web_platform_tests(test_data: Path) -> None:
    """Every case of urltestdata: same URL less fragment and user information, or no URL for both."""
    cases = _cases(test_data, "urltestdata.json")
    assert len(cases) > 800
    wrong = [(case["input"], case.get("base")) for case in cases if fetch_url(case["input"], case.get("base")) != _expected(case)]
    assert wrong == []


def test_canonical_form_names_the_same_resource(test_data: Path) -> None:
    """Every case of urltestdata: the key decodes to the same bytes as WHATWG's URL, and is its own key."""
    for case in _cases(test_data, "urltestdata.json"):
        canonical, expected = canonical_url(case["input"], case.get("base")), _expected(case)
        assert (canonical is None) == (expected is None)
        if canonical is not None and expected is not None:
            assert unquote_to_bytes(canonical) == unquote_to_bytes(expected)
            assert canonical_url(canonical) == canonical


def test_hosts_agree_with_the_idna_vectors(test_data: Path) -> None:
    """toascii and IdnaTestV2: same A-label host, or refused by both."""
    for name in ("toascii.json", "IdnaTestV2.json"):
        wrong = []
        for case in _cases(test_data, name):
            found = fetch_url(f"https://{case['input']}/x")
            host = None if found is None else found.split("/")[2]
            if host != case["output"] and case["input"]:
                wrong.append(case["input"])
        assert wrong == []


def test_odd_urls_normalise_as_elsewhere(test_data: Path) -> None:
    """crawler-commons' odd URLs never raise and mostly agree; its refused hosts are refused here too."""
    folder = test_data / "url" / "crawler-commons"
    lines = [
        line
        for line in (folder / "weirdToNormalizedUrls.csv").read_text("utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    rows = [row for row in csv.reader(lines, skipinitialspace=True) if len(row) == 2 and row[0].startswith("http")]
    agreed = sum(canonical_url(url) == expected for url, expected in rows)
    assert agreed >= len(rows) * 0.6
    for line in (folder / "invalidUrls.csv").read_text("utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            assert canonical_url(line) is None


def test_registered_domains_agree_with_the_suffix_list(test_data: Path) -> None:
    """publicsuffix.org's own checks, in A-labels: same registered domain, or the host itself where there is none."""
    checked = 0
    for line in (test_data / "url" / "psl" / "test_psl.txt").read_text("utf-8").splitlines():
        if not line.startswith("checkPublicSuffix("):
            continue
        name, expected = (part.strip().strip("'") for part in line[len("checkPublicSuffix(") :].rstrip(");").split(","))
        host = host_of(f"http://{name}/")
        if name == "null" or not host or name.startswith("."):
            continue
        checked += 1
        assert registered_domain(host) == (host if expected == "null" else host_of(f"http://{expected}/"))
    assert checked > 60
