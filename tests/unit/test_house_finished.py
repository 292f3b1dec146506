"""Nothing is unfinished, and no error is swallowed: searched for in the syntax tree, so comments cannot hide it."""

from __future__ import annotations

import ast
import re

import pytest

from tests.unit.house import ROOT, Module, functions, modules, port_methods, report

BROAD: dict[tuple[str, str], str] = {
    # (file, function): why anything at all may arrive there, and where it goes instead
    ("corpus/engine/process.py", "_read"): "a child that cannot read its parent's words says so and ends: it would wait for ever",
    ("corpus/engine/local.py", "_attempt"): "a bug in a task is carried whole to the parent, which stops the run",
    (
        "corpus/filter/user_signals.py",
        "_module",
    ): "the operator's module may raise anything; it becomes a usage error that names it",
}
"""The only places that may catch `Exception`. A row without a matching place fails too."""
BAD_NAMES = {"utils", "util", "helpers", "helper", "common", "base", "misc", "manager", "core"}
UNFINISHED = re.compile(r"\b(?:T[O]DO|F[I]XME|X[X]X|H[A]CK)\b")
MACHINE = re.compile(r"(?:^|[^\w.:/])/(?:w[o]rk|f[a]rm|h[o]me|r[o]ot|U[s]ers|t[m]p)(?:/|\b)")
INDEX = re.compile(r"(?:i[n]dex-url|f[i]nd-links|e[x]tra-index)\b")


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_ellipsis(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node.value.value is Ellipsis


def _excused(tree: ast.Module) -> set[int]:
    """ids of functions whose body may be empty: methods of Protocols, overloads, click groups (their docstring is the
    help), and a method that says in a docstring why its port's act costs nothing here."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(b) for b in node.bases):
            found |= {id(child) for child in node.body}
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = {ast.unparse(d).rpartition(".")[2] for d in node.decorator_list}
            if names & {"overload", "abstractmethod"} or any(".group(" in ast.unparse(d) for d in node.decorator_list):
                found.add(id(node))
            if node.name in port_methods() and ast.get_docstring(node):
                found.add(id(node))
    return found


def empty_functions(tree: ast.Module) -> list[tuple[int, str]]:
    """Functions that do nothing at all: only `pass`, `...` or a docstring."""
    excused = _excused(tree)
    found = []
    for node in functions(tree):
        body = [stmt for stmt in node.body if not _is_docstring(stmt)]
        if id(node) not in excused and all(isinstance(stmt, ast.Pass) or _is_ellipsis(stmt) for stmt in body):
            found.append((node.lineno, f"{node.name} does nothing"))
    return found


def swallowed(tree: ast.Module) -> list[tuple[int, str]]:
    """Handlers that let an error vanish: bare, or with nothing but `pass` (or `...`, or `continue`) in them."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            if node.type is None:
                found.append((node.lineno, "bare except"))
            if all(isinstance(stmt, ast.Pass) or _is_ellipsis(stmt) for stmt in node.body):
                found.append((node.lineno, "an error is swallowed"))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
            broad = {ast.unparse(arg) for arg in node.args} & {"Exception", "BaseException"}
            found += [(node.lineno, f"suppress({name})") for name in sorted(broad)]
    return found


def broad_handlers(tree: ast.Module) -> list[tuple[int, str]]:
    """(line, function) of every handler for Exception or BaseException that does not end in a plain `raise`."""
    found = []
    owners = {id(child): node.name for node in functions(tree) for child in ast.walk(node)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.ExceptHandler) or node.type is None:
            continue
        kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        last = node.body[-1]
        cleans_up = isinstance(last, ast.Raise) and last.exc is None
        if {ast.unparse(kind) for kind in kinds} & {"Exception", "BaseException"} and not cleans_up:
            found.append((node.lineno, owners.get(id(node), "<module>")))
    return found


def test_nothing_is_left_out() -> None:
    """No function is a stub, and nothing raises the error that says so."""
    found = []
    for module in modules():
        found += [f"{module.shown}:{line}: {what}" for line, what in empty_functions(module.tree)]
        found += [
            f"{module.shown}:{node.lineno}: not implemented"
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Name) and node.id == "NotImplemented" + "Error"
        ]
    assert not found, report(found)


def test_no_error_is_swallowed() -> None:
    """An `except` does something with what it caught; to ignore one kind on purpose there is `contextlib.suppress`."""
    found = [f"{m.shown}:{line}: {what}" for m in modules() for line, what in swallowed(m.tree)]
    assert not found, report(found)


def test_broad_handlers_are_listed() -> None:
    """`except Exception` stands only where the list above gives a reason (or where it cleans up and raises again)."""
    seen = {(m.shown, function): line for m in modules() for line, function in broad_handlers(m.tree)}
    found = [
        f"{file}:{line}: {function} catches everything"
        for (file, function), line in seen.items()
        if (file, function) not in BROAD
    ]
    found += [
        f"{file}:1: {function} is on the list but catches nothing broad"
        for file, function in BROAD
        if (file, function) not in seen
    ]
    found += [f"{file}:1: {function} is on the list without a reason" for (file, function), why in BROAD.items() if len(why) < 15]
    assert not found, report(found)


def test_no_notes_to_self() -> None:
    """No file of the product or its tests carries a note about work not done."""
    found = [
        f"{shown}:{number}: {line.strip()[:100]}"
        for shown, text in _texts("corpus", "tests", "configs")
        for number, line in enumerate(text.splitlines(), start=1)
        if UNFINISHED.search(line)
    ]
    assert not found, report(found)


def test_no_paths_of_one_machine() -> None:
    """No path of somebody's machine and no package index stands in the product, its configurations or its make file."""
    found = [
        f"{shown}:{number}: {line.strip()[:100]}"
        for shown, text in _texts(
            "corpus", "configs", "Makefile", "pyproject.toml", "requirements.txt", "requirements-dev.txt", ".ci"
        )
        for number, line in enumerate(text.splitlines(), start=1)
        if MACHINE.search(line) or INDEX.search(line)
    ]
    assert not found, report(found)


def test_files_are_named_for_an_idea() -> None:
    """No file is named for being left over."""
    found = [f"{m.shown}:1: name it for its idea" for m in modules() if m.path.stem.strip("_") in BAD_NAMES]
    assert not found, report(found)


def _texts(*places: str) -> list[tuple[str, str]]:
    kinds = {".py", ".toml", ".txt", ".md", ".html", ".tsv", ""}
    found = []
    for place in places:
        top = ROOT / place
        paths = [top] if top.is_file() else sorted(top.rglob("*"))
        found += [(str(p.relative_to(ROOT)), p.read_text("utf-8", "replace")) for p in paths if p.is_file() and p.suffix in kinds]
    return found


@pytest.mark.parametrize(
    ("source", "check", "bad"),
    [
        ("def f():\n    pass", empty_functions, True),
        ("def f():\n    'doc'\n    ...", empty_functions, True),
        ("class P(Protocol):\n    def f(self): ...", empty_functions, False),
        ("try:\n    x\nexcept ValueError:\n    pass", swallowed, True),
        ("try:\n    x\nexcept:\n    raise", swallowed, True),
        ("with suppress(Exception):\n    x", swallowed, True),
        ("try:\n    x\nexcept ValueError:\n    y", swallowed, False),
        ("try:\n    x\nexcept (OSError, Exception):\n    y", broad_handlers, True),
        ("try:\n    x\nexcept BaseException:\n    y\n    raise", broad_handlers, False),
    ],
)
def test_the_checks_themselves(source: str, check: object, bad: bool) -> None:
    """Each search finds what it is for, and nothing else."""
    assert callable(check)
    assert bool(check(ast.parse(source))) is bad


def test_machine_paths_are_recognised() -> None:
    """The pattern hits a path of a machine and spares a path of a URL."""
    assert MACHINE.search('"/ho' + 'me/me/x"')
    assert MACHINE.search("/tm" + "p/x")
    assert not MACHINE.search("http://a.example/tm" + "p/x")
    assert not MACHINE.search("frame/wo" + "rk/x")


def test_module_type_is_used() -> None:
    """The tree holds modules, so that an empty search cannot pass for a clean one."""
    assert len(modules()) > 30
    assert all(isinstance(m, Module) for m in modules())
