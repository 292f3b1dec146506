"""The documents' columns `use` and `evidence`: what this response alone says, read by `optout` and only flattened here."""

from __future__ import annotations

from dataclasses import dataclass

from corpus.model import Capture, Evidence
from corpus.optout.response import judge_response
from corpus.optout.settings import OptoutSettings
from corpus.page.tree import Page


@dataclass(frozen=True, slots=True)
class Verdict:
    """`use` as stored, and the evidence as rows of the evidence struct (without times: the row has `fetched_at`)."""

    use: str
    evidence: list[dict[str, object]]


def judge_capture(capture: Capture, page: Page | None, settings: OptoutSettings, token: str) -> Verdict:
    """The response-level verdict on a capture; `page` is its parsed body, None where there is none."""
    verdict = judge_response(
        capture.found or capture.url, capture.status, capture.headers, page, capture.fetched_at, settings, token
    )
    return Verdict(verdict.use.value, [_flat(item) for item in verdict.evidence])


def _flat(item: Evidence) -> dict[str, object]:
    return {
        "protocol": item.protocol,
        "source": item.source,
        "line_no": item.line_no,
        "raw": item.raw.encode("utf-8", "replace").decode(),
        "agent": item.agent.encode("utf-8", "replace").decode(),
        "file_digest": item.file_digest,
        "axis": item.axis,
        "verdict": item.verdict,
    }
