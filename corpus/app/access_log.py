"""Lines of a web server's access log as contacts: nginx and Apache combined (with or without durations), JSON lines, or a
pattern of the reader's own.

A log knows less than a server: many write the time in whole seconds, most write no duration, few write the virtual host.
What a line does not say stays unknown (`resolution_s`, `took_s` None), and who judges must give the benefit of it to
the crawler. Lines are strangers' text: they are cut, never trusted, and one that cannot be read is counted.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from corpus.errors import UsageError

LINE_MAX = 64 * 1024
_COMBINED = re.compile(
    r"(?:(?P<vhost>[^\s\"\[:]{1,255})(?::(?P<vport>\d{1,5}))?\s+)?(?P<client>\S{1,255}) \S{1,255} \S{1,255} \[(?P<time>[^\]]{1,64})\] "
    r"\"(?P<request>(?:[^\"\\]|\\.){0,16384})\" (?P<status>\d{3}) (?:\d+|-)(?: \"(?:[^\"\\]|\\.){0,16384}\" \"(?P<agent>(?:[^\"\\]|\\.){0,4096})\")?"
    r"(?:\s+(?P<took>\d+(?:\.\d+)?))?"
)
"""`[vhost[:port]] client ident user [time] "request" status bytes "referer" "agent" [duration]`"""
_KEYS: dict[str, tuple[str, ...]] = {
    "time": ("arrived", "msec", "ts", "time_iso8601", "@timestamp", "timestamp", "time", "time_local"),
    "end": ("ended",),
    "took": ("request_time", "duration", "duration_s", "request_duration", "took"),
    "host": ("host", "http_host", "vhost", "server_name", "request_host"),
    "server": ("server_addr", "ip"),
    "target": ("request_uri", "uri", "path", "target", "url"),
    "request": ("request",),
    "status": ("status", "status_code", "response_status"),
    "agent": ("http_user_agent", "user_agent", "agent", "useragent", "request_user_agent"),
}
"""Names that servers and their usual JSON formats give to what we need, best first."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One request as the log tells it. `at` (epoch seconds) is when the line says it happened; `took_s` its duration, and then
    `at` is its end; `resolution_s`: how coarse `at` is. `host` and `server` (an address of ours) may be empty."""

    line: int
    at: float
    took_s: float | None
    resolution_s: float
    host: str
    server: str
    target: str
    status: int
    agent: str

    @property
    def started(self) -> float:
        return self.at - (self.took_s or 0.0)


@dataclass(slots=True)
class Reading:
    """What was read beside the hits: all lines, and those that no format fits."""

    lines: int = 0
    unread: int = 0


@dataclass(frozen=True, slots=True)
class Spelling:
    """How a log writes what its lines do not explain: the `unit` (seconds) of whole-number durations, and whether a line's
    time is when the request began (Apache's %t) or when it was over (nginx)."""

    unit: float = 1e-6
    starts: bool = False


def read_hits(path: str, reading: Reading, spelling: Spelling, *, pattern: str = "") -> Iterator[Hit]:
    """Hits in the log's own order; `path` may end in `.gz` or be `-`. Raises UsageError for a file that cannot be read and a
    pattern that cannot be used.
    """
    parse = _parser(pattern, spelling)
    with _opened(path) as file:
        while line := file.readline(LINE_MAX):
            whole = line.endswith(b"\n") or len(line) < LINE_MAX
            while not whole:  # the rest of a line too long to be a request
                rest = file.readline(LINE_MAX)
                whole = rest.endswith(b"\n") or len(rest) < LINE_MAX
            text = line.decode("utf-8", "replace").strip()
            if not text:
                continue
            reading.lines += 1
            hit = parse(reading.lines, text)
            if hit is None:
                reading.unread += 1
            else:
                yield hit


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    if path == "-":
        yield sys.stdin.buffer
        return
    try:
        with Path(path).open("rb") as file:
            yield gzip.GzipFile(fileobj=file) if path.endswith(".gz") else file  # type: ignore[misc]
    except (OSError, EOFError) as error:
        raise UsageError(f"cannot be read: {error}", path, "name an access log, its .gz, or - for standard input") from None


def _parser(pattern: str, spelling: Spelling) -> Callable[[int, str], Hit | None]:
    if not pattern:
        return lambda number, text: (_json if text.startswith("{") else _combined)(number, text, spelling)
    try:
        own = re.compile(pattern)
    except re.error as error:
        raise UsageError(f"not a regular expression: {error}", "--pattern", "use named groups, as in the help") from None
    if not {"time", "agent"} <= own.groupindex.keys():
        raise UsageError("the groups `time` and `agent` are needed", "--pattern", "write (?P<time>…) and (?P<agent>…)")

    def parse(number: int, text: str) -> Hit | None:
        match = own.match(text)
        return None if match is None else _hit(number, {key: text for key, text in match.groupdict().items() if text}, spelling)

    return parse


def _combined(number: int, text: str, spelling: Spelling) -> Hit | None:
    match = _COMBINED.match(text)
    if match is None:
        return None
    facts = {key: value for key, value in match.groupdict().items() if value}
    facts["host"] = facts.pop("vhost", "")
    return _hit(number, facts, spelling)


def _json(number: int, text: str, spelling: Spelling) -> Hit | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    flat = dict(found)
    inner = found.get("request")
    if isinstance(inner, dict):  # Caddy nests the request
        agent = (inner.get("headers") or {}).get("User-Agent") if isinstance(inner.get("headers"), dict) else None
        flat |= {"host": inner.get("host"), "uri": inner.get("uri"), "request": None, "user_agent": agent}
    facts: dict[str, str] = {}
    for name, keys in _KEYS.items():
        value = next((flat[key] for key in keys if flat.get(key) not in (None, "")), None)
        if isinstance(value, list):
            value = value[0] if value else None
        if value is not None and not isinstance(value, dict):
            facts[name] = str(value)
    return _hit(number, facts, spelling)


def _hit(number: int, facts: dict[str, str], spelling: Spelling) -> Hit | None:
    at = _time(facts.get("time", ""))
    if at is None:
        return None
    moment, resolution_s = at
    took = _took(facts.get("took", ""), spelling.unit)
    if spelling.starts:
        moment += took or 0.0
    if (end := _time(facts.get("end", ""))) is not None:  # a log that writes both ends
        moment, took = end[0], max(end[0] - at[0], 0.0)
    target = facts.get("target", "") or next(iter(facts.get("request", "").split(" ")[1:2]), "")
    status = facts.get("status", "")
    return Hit(
        number, moment, took, resolution_s, facts.get("host", "").lower().rstrip("."), facts.get("server", ""), target[:16384],
        int(status) if status.isdigit() and len(status) == 3 else 0, facts.get("agent", ""),
    )  # fmt: skip


def _took(text: str, unit: float) -> float | None:
    """A duration: with a point it is seconds, whole numbers are in the unit that was asked for."""
    try:
        value = float(text) if text else None
    except ValueError:
        return None
    if value is None or not 0.0 <= value < 1e12:
        return None
    return value if "." in text or "e" in text.lower() else value * unit


def _time(text: str) -> tuple[float, float] | None:
    """(epoch seconds, resolution) of an epoch number, an ISO-8601 time, or the time of the common log format."""
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        return _written_time(text)
    if not 0.0 <= value < 1e17:
        return None
    while value > 1e11:  # milli-, micro-, nanoseconds
        value /= 1000.0
        text += "."
    return value, 0.001 if "." in text else 1.0


def _written_time(text: str) -> tuple[float, float] | None:
    try:
        common = datetime.strptime(text, "%d/%b/%Y:%H:%M:%S %z")
    except ValueError:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            return None
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return moment.timestamp(), 0.001 if "." in text else 1.0
    return common.timestamp(), 1.0
