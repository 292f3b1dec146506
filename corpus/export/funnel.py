"""Law C over the decisions: at each step what goes in comes out or is dropped for a reason, and what comes out goes in next.

Counts URLs by their latest visit, from the step `extracted` on; the steps before belong to the frontier.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from corpus.errors import CorpusError
from corpus.model import FUNNEL_STAGES, FunnelStep

STAGES = FUNNEL_STAGES[FUNNEL_STAGES.index("extracted") :]


def funnel(con: duckdb.DuckDBPyConnection) -> tuple[FunnelStep, ...]:
    """The steps from `extracted` to `exported`, counted from `staged`."""
    total = 0
    dropped: dict[str, dict[str, int]] = {stage: {} for stage in STAGES}
    for stage, reason, rows in con.execute(
        "SELECT stage, reason, count(*) FROM staged GROUP BY ALL ORDER BY stage, reason"
    ).fetchall():
        total += rows
        if reason:
            dropped[stage][reason] = rows
    steps = []
    for stage in STAGES:
        out = total - sum(dropped[stage].values())
        steps.append(FunnelStep(stage, total, out, dropped[stage]))
        total = out
    return tuple(steps)


def check(steps: Sequence[FunnelStep], exported: int) -> None:
    """Raise when law C does not hold, or the last step does not bring out the `exported` rows."""
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        if not step.adds_up() or (following is not None and step.n_out != following.n_in):
            raise CorpusError(f"the funnel does not add up at {step.stage}: {step}", "export")
    if steps[-1].n_out != exported:
        raise CorpusError(f"{steps[-1].n_out} rows passed the funnel, {exported} would be exported", "export")
