"""Every module says what it promises, every public function what it returns."""

from __future__ import annotations

import ast

from tests.unit.house import modules, port_methods, report

LONG_METHOD = 10
"""Lines from which a public method of a public class needs a docstring, unless the Protocol it implements has it."""


def test_modules() -> None:
    """A module that holds anything begins with a docstring."""
    found = [f"{m.shown}:1: no module docstring" for m in modules() if m.tree.body and not ast.get_docstring(m.tree)]
    assert not found, report(found)


def test_module_docstrings_are_short() -> None:
    """A module docstring is read by everybody who opens the file: at most 30 lines."""
    found = [
        f"{m.shown}:1: a docstring of {(ast.get_docstring(m.tree) or '').count(chr(10)) + 1} lines"
        for m in modules()
        if (ast.get_docstring(m.tree) or "").count("\n") >= 30
    ]
    assert not found, report(found)


def test_functions() -> None:
    """A public function of a module has a docstring; so has a long public method, unless its port describes it."""
    ports = port_methods()
    found = []
    for module in modules():
        for node in module.tree.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found += _missing(module.shown, node)
            elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                methods = [m for m in node.body if isinstance(m, ast.FunctionDef | ast.AsyncFunctionDef) and m.name not in ports]
                for method in methods:
                    if (method.end_lineno or 0) - method.lineno >= LONG_METHOD:
                        found += _missing(module.shown, method, f"{node.name}.")
    assert not found, report(found)


def _missing(shown: str, node: ast.FunctionDef | ast.AsyncFunctionDef, owner: str = "") -> list[str]:
    if node.name.startswith("_") or ast.get_docstring(node):
        return []
    return [f"{shown}:{node.lineno}: {owner}{node.name} has no docstring"]
