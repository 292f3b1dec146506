"""`corpus ctl`: orders for a crawl that is under way, or for the next one. Each is one durable line in the control log.

A run obeys before its next take, without a restart. Pause, slow, block and budget last until they are superseded; a
drain ends the run under way, like one Ctrl-C.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from corpus.app.domain_target import domain_of, owned_domain
from corpus.app.fleet_status import workers_there
from corpus.app.project import Project
from corpus.errors import ServerGone, UsageError
from corpus.settings import seconds, size_bytes
from corpus.store.locks import holder
from corpus.store.standing_orders import BUDGETS, EVERYONE, FACTOR_MAX
from corpus.url.canonical import canonical_url
from corpus.url.host import host_of

FROM_CONFIG = "config"


@dataclass(frozen=True, slots=True)
class Given:
    """An order as it was recorded. `running`: a run is under way and will obey; None: the server that would know does not answer."""

    n: int
    action: str
    value: str
    detail: dict[str, Any]
    running: bool | None

    def document(self) -> dict[str, Any]:
        return {"n": self.n, "action": self.action, "value": self.value, **self.detail, "running": self.running}


def pause(project: Project, reason: str = "") -> Given:
    """Contact nobody until `resume`; what is in flight ends normally. A run that starts meanwhile waits."""
    return _give(project, "pause", reason=reason)


def resume(project: Project, reason: str = "") -> Given:
    """Lift a pause."""
    return _give(project, "resume", reason=reason)


def drain(project: Project, reason: str = "") -> Given:
    """End the run under way in order, resumable. Raises UsageError when there is none."""
    if running(project) is False:
        raise UsageError("no run is under way, so there is nothing to drain", str(project.layout.root))
    return _give(project, "drain", reason=reason)


def slow(project: Project, target: str, factor: float, reason: str = "") -> Given:
    """Stretch the gaps of a host (with every host below it) or of `all`; 1 goes back to the pace they have earned."""
    if not 1.0 <= factor <= FACTOR_MAX:
        hint = "2 halves the pace, 1 lifts an earlier order; nothing here makes a crawl faster than its hosts allow"
        raise UsageError(f"the factor is from 1 to {FACTOR_MAX:g}, not {factor:g}", "ctl slow", hint)
    everyone = target.lower() == EVERYONE
    value = EVERYONE if everyone else domain_of(target)
    return _give(project, "slow", kind="" if everyone else "domain", value=value, detail={"factor": factor}, reason=reason)


def block(project: Project, target: str, reason: str = "", *, lift: bool = False) -> Given:
    """Never ask for a domain (and every host below it) or for one URL; `lift` takes an earlier block back."""
    action = "unblock" if lift else "block"
    if "://" not in target:
        value = _named_before(target) if lift else owned_domain(project, target)
        return _give(project, action, kind="domain", value=value, reason=reason)
    url = canonical_url(target)
    if url is None:
        raise UsageError("not an http(s) URL", target[:200])
    if not lift:
        domain_of(host_of(url))
    return _give(project, action, kind="url", value=url, reason=reason)


def budget(project: Project, kind: str, limit: str, reason: str = "") -> Given:
    """Another limit on `pages` (all runs together), `bytes` or `time` (of a run); `config` goes back to the configuration's."""
    value: float | None
    try:
        if limit.lower() == FROM_CONFIG:
            value = None
        elif kind == "pages":
            value = float(int(limit.replace("_", "")))
        else:
            value = float(size_bytes(limit) if kind == "bytes" else seconds(limit))
    except ValueError as error:
        raise UsageError(
            str(error), f"ctl budget {kind}", f'a number, or "{FROM_CONFIG}" for what the configuration says'
        ) from None
    if kind not in BUDGETS or (value is not None and value <= 0):
        raise UsageError(f"a budget of {limit} {kind} is none", "ctl budget", f"{', '.join(BUDGETS)}, and more than nothing")
    return _give(project, "budget", value=kind, detail={"limit": value}, reason=reason)


def running(project: Project) -> bool | None:
    """Whether a crawl holds this folder now, or workers share it; None when their server does not answer."""
    if holder(project.layout.locks / "crawl.lock") is not None:
        return True
    try:
        return bool(workers_there(project))
    except ServerGone:  # an order stands in the log, and needs no server
        return None


def _give(
    project: Project, action: str, *, kind: str = "", value: str = "", detail: dict[str, Any] | None = None, reason: str = ""
) -> Given:
    n = project.control.append(action, at=time.time(), kind=kind, value=value, reason=reason, detail=detail)
    return Given(n, action, value, detail or {}, running(project))


def _named_before(target: str) -> str:
    """What a block that is lifted may have named, which was once less than a domain. Raises UsageError for what is no host."""
    name = target.strip().strip(".")
    url = canonical_url(f"http://{name}/") if name and not set(name) & set("/?#@ \t\r\n") else None
    if url is None:
        raise UsageError("not a domain or host", target[:200], "write example.org, or a whole URL with its scheme")
    return host_of(url)
