"""What commands and their children do without, and that the library leaves its caller's process alone."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from importlib.machinery import PathFinder

import numpy as np
import pyarrow as pa
import pytest

from corpus.engine.lean import ENVIRONMENT, UNUSED, lean
from corpus.filter.columns import call, flags, integers, numbers, texts

OURS, USERS = {"__name__": "corpus.filter.probe"}, {"__name__": "rules_of_a_user"}
"""Who runs a piece of code."""


def test_what_is_unused_is_not_there_inside_the_block_and_is_there_after_it(monkeypatch, tmp_path):
    """A module on the list looks to us as if it were not installed, whether imported or asked for, and to nobody else: a user's rules get
    what they import. Afterwards nothing differs."""
    (name,) = UNUSED
    (tmp_path / f"{name}.py").write_text("here = True\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, name, raising=False)
    before = list(sys.meta_path)
    with lean():
        asked = "import importlib.util; found = importlib.util.find_spec(name) is not None"
        for who, sees in ((OURS, False), (USERS, True)):
            exec(asked, seen := {**who, "name": name})
            assert seen["found"] is sees
        for imports in (f"import {name}", f"import importlib; importlib.import_module({name!r})"):
            with pytest.raises(ModuleNotFoundError):
                exec(imports, dict(OURS))
        exec(f"import {name}; assert {name}.here", dict(USERS))
        del sys.modules[name]
        assert importlib.util.find_spec("json") is not None
        assert importlib.util.find_spec("pyarrow.parquet") is not None
        assert PathFinder not in sys.meta_path
    assert sys.meta_path == before
    assert importlib.util.find_spec(name) is not None


def test_what_somebody_set_in_the_environment_stays(monkeypatch):
    """The environment has the last word over threads and plugins."""
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    with lean():
        import os

        assert os.environ["OPENBLAS_NUM_THREADS"] == "3"
        assert os.environ["PYDANTIC_DISABLE_PLUGINS"] == "__all__"
    monkeypatch.delenv("PYDANTIC_DISABLE_PLUGINS")


def _said(code: str, tmp_path) -> str:
    """What Python code says in a fresh process, where pandas is installed if only as a stand-in that tells that it was loaded."""
    (tmp_path / "pandas.py").write_text("__version__ = '0'\n", "utf-8")
    script = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{code}"
    return subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True, capture_output=True, text=True).stdout


def test_commands_and_their_children_load_no_pandas(tmp_path):
    """Neither a command nor a process that it starts imports pandas for the sake of one Arrow column; the bare step does."""
    column = "exec('import pyarrow as pa; pa.array([1])', {'__name__': 'corpus.filter.probe'})"
    assert _said(f"{column}; print('pandas' in sys.modules)", tmp_path).split() == ["True"]
    inside = f"from corpus.engine.lean import lean\nwith lean():\n    {column}\nprint('pandas' in sys.modules)"
    assert _said(inside, tmp_path).split() == ["False"]
    command = (
        "import atexit; atexit.register(lambda: print('pandas' in sys.modules))\n"
        "import corpus.cli.main as m; sys.argv = ['corpus', 'probe']\n"
        "import click\n"
        "@click.command()\n"
        "def probe():\n"
        f"    {column}\n"
        "m._Verbs.get_command = lambda *_: probe\n"
        "m.main()"
    )
    assert _said(command, tmp_path).split() == ["False"]


def child(spec: str, link) -> None:
    """In a child of the engine: make a column, and tell whether that loaded pandas, and how many threads numpy may have."""
    import os

    sys.path.insert(0, spec)
    exec("import pyarrow as pa; pa.array([1])", dict(OURS))
    link.send(("pandas" in sys.modules, os.environ.get("OPENBLAS_NUM_THREADS")))


def test_a_child_of_the_engine_is_lean(monkeypatch, tmp_path):
    """Children of whoever uses the engine, also of the library, do without by themselves."""
    from corpus.engine.process import start

    (tmp_path / "pandas.py").write_text("__version__ = '0'\n", "utf-8")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    started = start("probe", "tests.unit.test_lean:child", str(tmp_path))
    try:
        assert started.connection.poll(60), "no answer"
        assert started.connection.recv() == (False, "1")
    finally:
        started.stop()


def test_the_library_clusters_without_pandas_and_leaves_its_caller_alone(tmp_path):
    """`corpus.cluster` loads neither pandas nor the functions of pyarrow.compute, and a caller's pandas works as before."""
    code = (
        "import numpy as np; from corpus import cluster\n"
        "table = np.arange(336, dtype=np.uint32).reshape(3, 112); table[2] = table[0]\n"
        "found = cluster(['b', 'c', 'a'], table)\n"
        "print(found['cluster_id'].to_pylist(), 'pandas' in sys.modules, 'pyarrow.compute' in sys.modules)\n"
        "import pandas; print(pandas.__version__)"
    )
    assert _said(code, tmp_path).splitlines() == ["['a', 'c', 'a'] False False", "0"]


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 65])
def test_columns_are_those_of_pyarrow(size):
    """Columns made here equal pyarrow's own, and come back as they were, also from a slice."""
    values = np.arange(size, dtype=np.int64) * 7 - 3
    assert integers(values[::-1]).equals(pa.array(values[::-1]))
    assert flags(values % 2 == 0).equals(pa.array(values % 2 == 0))
    strings = [None if n % 5 == 4 else f"é{n}" for n in range(size)]
    assert texts(strings).equals(pa.array(strings, pa.string()))
    assert numbers(integers(values)).tolist() == values.tolist()
    assert numbers(integers(values).slice(size // 2)).tolist() == values[size // 2 :].tolist()
    assert call("take", texts(strings), integers(values[:0])).equals(pa.array([], pa.string()))


def test_what_is_no_text_is_refused():
    """An id that is a number is a mistake of the caller's, not a text."""
    with pytest.raises(TypeError):
        texts([1])  # type: ignore[list-item]


def test_a_configuration_is_checked_without_arrow_or_database(tmp_path):
    """Whoever only crawls loads nothing of what measuring and releases need, to find out that there is no mistake."""
    (tmp_path / "corpus.toml").write_text(
        '[corpus]\nname = "x"\nlanguages = ["de"]\n[crawl]\nseeds = ["https://example.org/"]\ncontact = "a@example.org"\n',
        "utf-8",
    )
    code = (
        "from corpus.config.check import load_checked\n"
        f"load_checked({str(tmp_path / 'corpus.toml')!r}, (), fetching=True)\n"
        "print([name for name in ('pyarrow', 'duckdb', 'trafilatura', 'fasttext') if name in sys.modules])"
    )
    assert _said(code, tmp_path).split() == ["[]"]
