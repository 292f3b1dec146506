"""Files and functions stay small enough to be read at one sitting."""

from __future__ import annotations

import ast

import pytest

from tests.unit.house import ROOT, functions, modules, report

FILE_MAX = 400
FILE_AIM = 300
FUNCTION_MAX = 70


def _lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Length of a function without its decorators."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def test_files(capsys: pytest.CaptureFixture[str]) -> None:
    """No source or test file is longer than 400 lines; those past 300 are printed, so that they are split in time."""
    sizes = {m.shown: m.text.count("\n") for m in modules()}
    sizes |= {str(p.relative_to(ROOT)): p.read_text("utf-8").count("\n") for p in sorted((ROOT / "tests").rglob("*.py"))}
    with capsys.disabled():
        for name, size in sorted(sizes.items(), key=lambda pair: -pair[1]):
            if FILE_AIM < size <= FILE_MAX:
                print(f"  note: {name} has {size} lines (aim: {FILE_AIM})")
    found = [f"{name}:1: {size} lines (at most {FILE_MAX})" for name, size in sizes.items() if size > FILE_MAX]
    assert not found, report(found)


def test_functions() -> None:
    """No function of the product is longer than 70 lines."""
    found = [
        f"{module.shown}:{node.lineno}: {node.name} has {_lines(node)} lines (at most {FUNCTION_MAX})"
        for module in modules()
        for node in functions(module.tree)
        if _lines(node) > FUNCTION_MAX
    ]
    assert not found, report(found)
