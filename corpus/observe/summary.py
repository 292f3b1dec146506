"""The end of a run as one document: `runs/<run>/summary.json` and what a person reads on the terminal.

Derived from what the folder holds, not from counters of the process: a run that was killed and resumed tells the
same numbers as one that was not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from corpus.model import FunnelStep
from corpus.reasons import REASONS


@dataclass(slots=True)
class FetchTotals:
    """What the fetch stage did, over all runs of this crawl folder."""

    requests: int = 0
    policy_requests: int = 0
    pages: int = 0
    not_modified: int = 0
    bytes_wire: int = 0
    bytes_body: int = 0
    by_status: dict[str, int] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    failed: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Summary:
    """CONTRACT's `summary.json`. `ended` is done, budget, interrupted or failed."""

    run_id: str
    crawl_id: str
    config_digest: str
    code_version: str
    started_at: str
    ended_at: str = ""
    ended: str = "done"
    exit_code: int = 0
    sentence: str = ""
    funnel: list[FunnelStep] = field(default_factory=list)
    fetch: FetchTotals = field(default_factory=FetchTotals)
    freshness: dict[str, Any] = field(default_factory=dict)
    """How fresh the pages probably are, once some were visited again; empty before."""
    overlap: dict[str, Any] = field(default_factory=dict)
    """What was processed while the crawl went on, what waited when it ended, and how long fetch was held for it; empty without."""
    cpu_s: dict[str, float] = field(default_factory=dict)
    wall_s: float = 0.0
    peak_rss_bytes: int = 0

    def document(self) -> dict[str, Any]:
        tree = asdict(self)
        tree["funnel"] = [
            {"stage": s.stage, "in": s.n_in, "out": s.n_out, "dropped": dict(sorted(s.dropped.items()))} for s in self.funnel
        ]
        return {"schema": 1, **tree}


def render_funnel(steps: Sequence[FunnelStep]) -> str:
    """The funnel for a terminal: each step, what went on, and every loss with its reason. Sums are checked here."""
    lines = []
    width = max((len(str(step.n_in)) for step in steps), default=1)
    for step in steps:
        assert step.adds_up(), f"funnel step {step.stage} does not add up: {step}"
        lines.append(f"  {step.stage:<10}{step.n_in:>{width}} in  {step.n_out:>{width}} out")
        for code, n in sorted(step.dropped.items(), key=lambda item: (-item[1], item[0])):
            lines.append(f"  {'':<10}{'-' + str(n):>{width + 3}}  {code}: {sentence_of(code)}")
    return "\n".join(lines)


def sentence_of(code: str) -> str:
    """What a reason code means; codes of a policy are `quality:<rule>`."""
    if code in REASONS:
        return REASONS[code].sentence
    family, _, rule = code.partition(":")
    return f"{REASONS[family].sentence} ({rule})" if family in REASONS and rule else code


def sentence(steps: Sequence[FunnelStep]) -> str:
    """Why there are this many rows, in one sentence."""
    if not steps or steps[0].n_in == 0:
        return "no URL is known: the seeds gave nothing"
    last = steps[-1]
    known = steps[0].n_in
    if last.n_out:
        return f"{last.n_out} of {known} known URLs are in the release"
    for step in steps:
        if step.n_out == 0 and step.n_in > 0:
            code, n = max(step.dropped.items(), key=lambda item: (item[1], item[0]))
            if step.stage == "fetched" and code in REASONS and REASONS[code].verdict == "pending":
                return f"nothing of {known} known URLs is in a release yet: {n} of {step.n_in} are {sentence_of(code)}"
            return f"nothing came through step {step.stage!r}: {n} of {step.n_in} were lost because: {sentence_of(code)}"
    return f"nothing of {known} known URLs is in a release yet"
