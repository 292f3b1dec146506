"""Recall and precision on graded pairs: two builds of one manual in six languages, and news with planted pairs."""

from __future__ import annotations

import csv
import gzip
import re
import tarfile
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from selectolax.lexbor import LexborHTMLParser

from corpus.filter.clusters import cluster
from corpus.filter.signatures import minhash, shingles

BINS = {(0.80, 0.85): 0.92, (0.85, 0.90): 0.98, (0.90, 1.01): 0.999}


@pytest.fixture(scope="module")
def manual(test_data: Path):
    """Texts by name, graded pairs, and the signatures and shingles of the texts."""
    texts = {}
    with tarfile.open(test_data / "neardup" / "installguide.tar.gz") as archive:
        for member in archive:
            if member.isfile() and member.name.endswith(".html"):
                body = LexborHTMLParser(archive.extractfile(member).read()).body
                texts[member.name] = re.sub(r"\s+", " ", body.text(separator=" "))
    with (test_data / "neardup" / "installguide_pairs.tsv").open() as file:
        pairs = [
            (r["lang"], f"amd64/{r['lang']}/{r['file']}", f"arm64/{r['lang']}/{r['file']}", float(r["jaccard_word5"]))
            for r in csv.DictReader(file, delimiter="\t")
        ]
    names = sorted(texts)
    bodies = [texts[name] for name in names]
    return names, pairs, minhash(bodies), shingles(bodies)


def _clusters(names, signatures, sets) -> dict[str, str]:
    table = cluster(names, signatures, sets)
    return dict(zip(table["id"].to_pylist(), table["cluster_id"].to_pylist(), strict=True))


def test_graded_pairs_are_found(manual):
    """Verified by shingles: recall .92 / .98 / .999 at J .80–.85 / .85–.90 / from .90."""
    names, pairs, signatures, sets = manual
    group = _clusters(names, signatures, sets)
    for (low, high), least in BINS.items():
        found = [group[a] == group[b] for _, a, b, grade in pairs if low <= grade < high]
        assert len(found) > 20
        assert sum(found) / len(found) >= least, (low, high)


def test_without_shingles_the_estimate_has_the_last_word(manual):
    """Signatures alone: 112 values miss a pair at J .80–.85 more often (their bound is .95, measured 19 of 23), none from .85."""
    names, pairs, signatures, _ = manual
    group = _clusters(names, signatures, None)
    place = {name: at for at, name in enumerate(names)}
    for (low, high), least in zip(BINS, (0.80, 0.98, 0.999), strict=True):
        found = [group[a] == group[b] for _, a, b, grade in pairs if low <= grade < high]
        assert sum(found) / len(found) >= least, (low, high)
    alike = {(a, b): float((signatures[place[a]] == signatures[place[b]]).mean()) for _, a, b, _ in pairs}
    assert all(group[a] != group[b] for (a, b), share in alike.items() if share < 0.70)  # not even through a third page


@pytest.mark.parametrize(("exact", "least"), [(True, 0.99), (False, 0.97)])
def test_pairs_that_are_joined_are_alike(manual, exact, least):
    """Precision against the grades, for languages whose words white space separates (the grades split there)."""
    names, pairs, signatures, sets = manual
    group = _clusters(names, signatures, sets if exact else None)
    joined = [grade for lang, a, b, grade in pairs if lang not in {"ja", "zh_CN"} and group[a] == group[b]]
    assert sum(grade >= 0.75 for grade in joined) / len(joined) >= least
    assert min(joined) >= 0.65


def test_no_pair_below_the_floor_shares_a_cluster(manual):
    """In the whole pool, all languages and pages together, no two pages of a cluster are below J .65 by our own shingles."""
    names, _, signatures, sets = manual
    by_name = dict(zip(names, sets, strict=True))
    members = defaultdict(list)
    for name, group in _clusters(names, signatures, sets).items():
        members[group].append(by_name[name])
    for group in members.values():
        for i, one in enumerate(group):
            for other in group[:i]:
                assert len(np.intersect1d(one, other)) / len(np.union1d(one, other)) >= 0.65


@pytest.mark.parametrize("exact", [True, False])
def test_planted_news_pairs_are_exactly_the_clusters(test_data, exact):
    """A thousand articles with ten planted pairs: these ten, and nothing else."""
    with gzip.open(test_data / "neardup" / "articles_1000.train.gz", "rt") as file:
        articles = dict(line.rstrip("\n").split(" ", 1) for line in file)
    truth = {frozenset(line.split()) for line in (test_data / "neardup" / "articles_1000.truth").read_text().splitlines()}
    bodies = list(articles.values())
    members = defaultdict(set)
    for name, group in _clusters(list(articles), minhash(bodies), shingles(bodies) if exact else None).items():
        members[group].add(name)
    assert {frozenset(group) for group in members.values() if len(group) > 1} == truth
