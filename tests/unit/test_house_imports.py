"""The walls of the house: who may import whom, and what a process that only fetches never loads."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from tests.unit.house import ROOT, Module, imported, modules, report

TIERS = (
    {"version", "errors", "model", "reasons", "settings"},
    {"url"},
    {"page"},
    {"optout"},
    {"crawl", "filter", "export"},
    {"store", "engine", "observe", "config", "testing"},
    {"app"},
    {"cli", "contrib", "__main__"},
)
"""From the ground up. A room imports what lies below it, and itself."""
LEVEL = {room: level for level, rooms in enumerate(TIERS) for room in rooms}
STRANGERS = {"crawl", "filter", "export"}
"""Stages of one tier never import each other; the services above them may, but not in a circle."""
FETCH_ROOMS = ("corpus.model", "corpus.url", "corpus.page", "corpus.optout", "corpus.crawl")
FETCH_STORES = ("objects", "commits", "warc", "frontier_memory", "frontier_sqlite", "consent_log", "control_log")
HEAVY = ("pyarrow", "duckdb", "trafilatura", "pandas", "boto3")


def _room_of(name: str) -> str | None:
    """The room that a dotted import names; None for other packages and for the lazy front door itself."""
    parts = name.split(".")
    if parts[0] != "corpus" or len(parts) < 2 or parts[1] not in LEVEL:
        return None
    return parts[1]


def _offences(module: Module) -> list[str]:
    found = []
    for line, name in imported(module):
        room = _room_of(name)
        if room is None or module.room in {room, ""}:
            continue
        mine, theirs = LEVEL[module.room], LEVEL[room]
        if theirs > mine or (theirs == mine and room in STRANGERS):
            found.append(f"{module.shown}:{line}: {module.room} imports {name}")
    return found


def test_every_room_has_a_place() -> None:
    """No room and no root module exists that the layer table does not know."""
    unknown = [f"{m.shown}:1: no place in the layer table" for m in modules() if m.room and m.room not in LEVEL]
    assert not unknown, report(unknown)


def test_imports_point_down() -> None:
    """A module imports only rooms below its own, wherever in the file the import stands."""
    found = [line for module in modules() for line in _offences(module)]
    assert not found, report(found)


def test_services_do_not_import_in_a_circle() -> None:
    """Rooms of one tier may use each other in one direction only."""
    edges: dict[tuple[str, str], str] = {}
    for module in modules():
        for line, name in imported(module):
            room = _room_of(name)
            if room and module.room and room != module.room and LEVEL[room] == LEVEL[module.room]:
                edges.setdefault((module.room, room), f"{module.shown}:{line}: {module.room} imports {name}")
    circles = [start for (start, _) in edges if _reaches(start, start, set(edges))]
    found = [shown for (a, b), shown in edges.items() if a in circles and b in circles and LEVEL[a] > 0]
    assert not found, report(found)


def _reaches(start: str, goal: str, edges: set[tuple[str, str]]) -> bool:
    seen: set[str] = set()
    ahead = [b for a, b in edges if a == start]
    while ahead:
        room = ahead.pop()
        if room == goal:
            return True
        if room not in seen:
            seen.add(room)
            ahead += [b for a, b in edges if a == room]
    return False


def test_the_builtin_filter_is_not_shadowed() -> None:
    """`from corpus import filter` would hide a builtin: names are imported from the room's modules."""
    found = []
    for module in modules():
        found += [
            f"{module.shown}:{line}: from corpus import filter" for line, name in imported(module) if name == "corpus.filter"
        ]
    assert not found, report(found)


def test_the_front_door_is_lazy() -> None:
    """`corpus/__init__.py` imports none of its rooms when it is loaded."""
    door = next(m for m in modules() if m.name == "corpus")
    found = [f"{door.shown}:{line}: {name}" for line, name in imported(door) if name.startswith("corpus")]
    assert not found, report(found)


def _fetch_modules() -> list[str]:
    rooms = [m.name for m in modules() if any(m.name == room or m.name.startswith(f"{room}.") for room in FETCH_ROOMS)]
    stores = [
        m.name
        for m in modules()
        if m.room == "store"
        and any(m.name.rpartition(".")[2] == name or m.name.rpartition(".")[2].startswith(f"{name}_") for name in FETCH_STORES)
    ]
    return rooms + stores


_PROBE = """
import importlib, sys
for name in {names!r}:
    importlib.import_module(name)
    for heavy in {heavy!r}:
        if heavy in sys.modules:
            print(f"{{name}} loads {{heavy}}")
            sys.exit(1)
"""


def test_fetch_processes_stay_small() -> None:
    """Importing all that a fetch process needs loads no Arrow, DuckDB or text extraction."""
    names = _fetch_modules()
    assert len(names) > 10
    probe = _PROBE.format(names=names, heavy=HEAVY)
    result = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("room", "line", "bad"),
    [
        ("crawl", "from corpus.filter.lines import x", True),
        ("url", "import corpus.page.charset", True),
        ("page", "def f():\n    from corpus.crawl import pace", True),
        ("export", "from ..filter import lines", True),
        ("crawl", "from corpus.model import Kind", False),
        ("store", "from corpus.crawl.ports import Clock", False),
        ("app", "from corpus.cli import main", True),
    ],
)
def test_the_check_itself(room: str, line: str, bad: bool) -> None:
    """The wall test sees imports in functions and relative ones, and lets the right ones pass."""
    module = Module(ROOT / "corpus" / room / "x.py", f"corpus.{room}.x", room, line, ast.parse(line))
    assert bool(_offences(module)) is bad
