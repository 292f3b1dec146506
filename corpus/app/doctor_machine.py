"""The machine and the install: Python, packages, file handles, memory, the clock. Looks only; changes nothing."""

from __future__ import annotations

import ctypes
import importlib
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from corpus.app.fetch_process import FILES_BESIDE_SLOTS
from corpus.app.findings import Finding, fault, ok, warn
from corpus.config.tree import Config
from corpus.errors import UsageError

PYTHON = (3, 11)
HANDLES_AT_LEAST = 256
"""File handles beside one per slot below which a fetch process cannot even open its files."""
COMPILED = (
    "ada_url", "aiohttp", "brotli", "duckdb", "fastwarc", "fasttext", "lxml", "numpy", "pyarrow", "pydantic_core", "rbloom", "regex",
    "resiliparse.parse", "selectolax.lexbor", "uvloop", "xxhash", "zlib_ng", "zstandard",
)  # fmt: skip
"""Modules with compiled parts: where a wheel does not fit the machine, importing says so."""
SKEW_S = 120.0
_STA_UNSYNC, _TIME_ERROR, _TIMEX_BYTES, _MAXERROR_AT, _STATUS_AT = 0x40, 5, 256, 24, 40
_UNSYNCED_S = 16.0
"""What the kernel reports as its error when nobody has ever set its clock right."""


def python() -> Finding:
    """The version this runs on."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < PYTHON:
        return fault("python", f"Python {version}", f"install Python {'.'.join(map(str, PYTHON))} or newer")
    return ok("python", f"Python {version} on {sys.platform}")


def packages() -> Iterator[Finding]:
    """Required versions, compiled modules that load, and no two packages that both bring `fasttext`."""
    wrong = [*_wrong_versions()]
    broken = {name: str(error) for name in COMPILED if (error := _import_error(name)) is not None}
    for what in wrong:
        yield fault("packages", what, "pip install -r requirements.txt")
    for name, why in broken.items():
        yield fault("packages", f"{name} does not load: {why[:160]}", "install it again: its wheel may be for another machine")
    rivals = sorted(set(metadata.packages_distributions().get("fasttext", [])))
    if len(rivals) > 1:
        hint = "keep fasttext-community alone: uninstall all of them, then install it again"
        yield fault("packages", f"several packages bring the module fasttext: {', '.join(rivals)}", hint)
    if not wrong and not broken and len(rivals) <= 1:
        yield ok("packages", f"{len(COMPILED)} compiled modules load, versions are as required")


def handles(config: Config) -> Finding:
    """Open files this process may have, against what a fetch process wants."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    slots = config.crawl.slots
    wanted, least = slots + FILES_BESIDE_SLOTS, slots + HANDLES_AT_LEAST
    if hard == resource.RLIM_INFINITY or hard >= wanted:
        return ok("handles", f"{'no limit on' if hard == resource.RLIM_INFINITY else hard} open files, {wanted} wanted")
    hint = f"raise the limit (ulimit -Hn {wanted}, LimitNOFILE= of the service), or lower crawl.slots"
    said = f"at most {hard} open files (now {soft}), and {slots} slots want {wanted}"
    return fault("handles", said, hint, "crawl.slots") if hard < least else warn("handles", said, hint, "crawl.slots")


def refuse_few_handles(config: Config) -> None:
    """Raise UsageError where a fetch process could not open its files: later it would fail wherever it happens to be."""
    found = handles(config)
    if found.state == "fault":
        raise UsageError(found.said, "open files", found.hint)


def memory(config: Config) -> Finding:
    """Memory that is free now, against `engine.memory` and `dedup.memory`."""
    available = _available_bytes()
    wanted = max(config.engine.memory, config.dedup.memory)
    if available is None:
        return ok("memory", "this system does not say how much is free")
    said = f"{available / 1e9:.1f} GB free, {wanted / 1e9:.1f} GB allowed by the configuration"
    if available < wanted:
        return warn("memory", said, "lower engine.memory and dedup.memory: both spill to disk", "engine.memory")
    return ok("memory", said)


def clock(config: Config) -> Iterator[Finding]:
    """What can be known of a wrong clock without asking anybody: it must not be behind what is on the disk."""
    now = time.time()
    newest, what = max(_known_times(config), default=(0.0, ""))
    at = datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds")
    if newest > now + SKEW_S:
        yield fault(
            "clock", f"it says {at}, which is {newest - now:.0f} s before {what}", "set the clock; times of fetches are evidence"
        )
        return
    error_s = _kernel_clock_error_s()
    if error_s is not None and error_s >= _UNSYNCED_S:
        yield warn("clock", f"{at}; the kernel does not know it to be right", "run a time service (chrony, systemd-timesyncd)")
    else:
        known = "" if error_s is None else f", within {error_s * 1000:.0f} ms by the kernel's account"
        yield ok("clock", f"{at}{known}")


def _wrong_versions() -> Iterator[str]:
    from packaging.requirements import Requirement

    try:
        needed = metadata.requires("corpus") or []
    except metadata.PackageNotFoundError:
        yield "corpus itself is not installed"
        return
    for line in needed:
        requirement = Requirement(line)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            found = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            yield f"{requirement.name} is not installed"
            continue
        if found not in requirement.specifier:
            yield f"{requirement.name} {found} is installed, and {requirement.specifier} is required"


def _import_error(name: str) -> ImportError | None:
    try:
        importlib.import_module(name)
    except ImportError as error:
        return error
    return None


def _available_bytes() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    except OSError:
        return None
    kilobytes = {line.split(":")[0]: int(line.split()[1]) for line in lines if len(line.split()) > 1}
    return kilobytes["MemAvailable"] * 1024 if "MemAvailable" in kilobytes else None


def _known_times(config: Config) -> Iterator[tuple[float, str]]:
    """Times that have surely passed: when this software was installed, and when the folder was last written to."""
    yield Path(__file__).stat().st_mtime, "this software was installed"
    for path in (config.root / "corpus.json", config.root / "runs", config.root / "commits", config.local / "frontier"):
        if path.exists():
            yield path.stat().st_mtime, f"{path.name} was written"
    runs = config.root / "runs"
    latest = max((path.name for path in runs.iterdir()), default="") if runs.is_dir() else ""
    try:
        yield datetime.strptime(latest[:16], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp(), f"run {latest} began"
    except ValueError:
        return


def _kernel_clock_error_s() -> float | None:
    """The kernel's own estimate of how wrong its clock may be (adjtimex, read only); None where it has none to give."""
    if sys.platform != "linux":
        return None
    state = ctypes.create_string_buffer(_TIMEX_BYTES)
    try:
        answer = ctypes.CDLL(None, use_errno=True).adjtimex(state)
    except (OSError, AttributeError):
        return None
    if answer < 0:
        return None
    status = int.from_bytes(state.raw[_STATUS_AT : _STATUS_AT + 4], sys.byteorder)
    if answer == _TIME_ERROR or status & _STA_UNSYNC:
        return _UNSYNCED_S
    return int.from_bytes(state.raw[_MAXERROR_AT : _MAXERROR_AT + 8], sys.byteorder) / 1e6


def cores() -> Finding:
    """Processors this process may use."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return ok("cores", f"{usable} usable")


def counted(findings: list[Finding]) -> dict[str, int]:
    """How many of each state."""
    return dict(Counter(finding.state for finding in findings))
