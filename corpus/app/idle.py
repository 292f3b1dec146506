"""Warnings about stages that changed nothing: more often a wrong path or a wrong threshold than a clean crawl.

Only words to the reporter; what is measured, clustered or released is not touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from corpus.export.decide import Decisions
from corpus.export.ports import ReleasePolicy
from corpus.filter.reduce import ClusterSummary
from corpus.observe.runlog import Reporter
from corpus.store.commits import CommitRecord

MIN_TEXTS = 1000
"""Among fewer texts it is no wonder that none resembles another."""


def warn_idle_lists(records: Iterable[CommitRecord], report: Reporter) -> None:
    """Each URL list that no measured document is on."""
    totals: dict[str, int] = {}
    documents = 0
    for record in records:
        hits: Mapping[str, int] = record.info.get("url_list_hits", {})
        documents += record.rows["documents"]
        for name, number in hits.items():
            totals[name] = totals.get(name, 0) + number
    for name in sorted(name for name, number in totals.items() if not number):
        hint = "look at the file: one domain or address a line"
        report("warning", what="a URL list without a single hit", list=name, documents=documents, hint=hint)


def warn_idle_dedup(summary: ClusterSummary, report: Reporter) -> None:
    """A thousand texts and no two alike, nor any exact copy."""
    if summary.texts > MIN_TEXTS and not summary.verified and summary.texts == summary.documents:
        report(
            "warning",
            what="no two documents are near-duplicates",
            documents=summary.documents,
            hint="is dedup.threshold too high?",
        )


def warn_idle_policy(policy: ReleasePolicy, decisions: Decisions | None, report: Reporter) -> None:
    """A policy with rules that dropped nothing (or none that could: `decisions` None, the release was there already)."""
    if decisions is None or not policy.signals:
        return
    judged = next(step.n_in for step in decisions.funnel if step.stage == "quality")
    if judged and not sum(decisions.rules.values()):
        hint = "corpus sample shows what was kept; corpus process --explain the rules"
        report("warning", what="the policy dropped nothing", policy=policy.name, documents=judged, hint=hint)
