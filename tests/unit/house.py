"""The source tree as the house tests see it: every module once, parsed, with the room it belongs to."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = ROOT / "corpus"


@dataclass(frozen=True, slots=True)
class Module:
    """One source file. `name` is the dotted module, `room` the part after `corpus.` (a root module is its own room)."""

    path: Path
    name: str
    room: str
    text: str
    tree: ast.Module

    @property
    def shown(self) -> str:
        """The path as it is printed."""
        return str(self.path.relative_to(ROOT))

    @property
    def package(self) -> str:
        """The package that relative imports of this module start from."""
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]


@cache
def modules() -> tuple[Module, ...]:
    """All of `corpus/`, by path."""
    return tuple(_module(path) for path in sorted(PACKAGE.rglob("*.py")))


def _module(path: Path) -> Module:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    room = parts[1] if len(parts) > 1 else ""
    text = path.read_text("utf-8")
    return Module(path, ".".join(parts), room, text, ast.parse(text, str(path)))


def imported(module: Module) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of every import of a module, at any depth; `from a import b` gives `a.b`."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.package.split(".")
                base = ".".join([*parts[: len(parts) - node.level + 1], *([base] if base else [])])
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function of a module, methods and inner ones included."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@cache
def port_methods() -> frozenset[str]:
    """Names of methods that some Protocol of the package declares."""
    return frozenset(
        node.name
        for module in modules()
        for owner in ast.walk(module.tree)
        if isinstance(owner, ast.ClassDef) and any("Protocol" in ast.unparse(base) for base in owner.bases)
        for node in owner.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def report(found: list[str]) -> str:
    """What a failing house test prints: one `file:line: what` a line."""
    return "\n" + "\n".join(found)
