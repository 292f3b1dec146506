"""`attach.sql` in the DuckDB that many still have (1.5): every view it promises can be read to its last row."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from corpus.app.attach import write_attach
from corpus.app.views import PUBLIC, Views
from tests.apart import apart
from tests.demo_corpus import make_demo

_READ = """
import json, sys, duckdb
con = duckdb.connect()
con.execute(open(sys.argv[1]).read())
rows = {name: len(con.execute(f"SELECT * FROM {name}").fetchall()) for name in sys.argv[2:]}
extra = con.execute("SELECT count(*) FROM documents WHERE signals.words > 0").fetchone()[0]
print(json.dumps([duckdb.__version__, rows, extra]))
"""


def test_an_older_duckdb_reads_every_view(tmp_path: Path) -> None:
    """The same rows in each view as in ours; signals too."""
    python = apart("python")
    made = make_demo(tmp_path / "demo").project()
    script = write_attach(made, tmp_path / "attach")
    told = subprocess.run([str(python), "-c", _READ, str(script), *PUBLIC], capture_output=True, text=True, check=True)
    version, rows, with_signals = json.loads(told.stdout)
    assert version.startswith("1.5.")
    with Views(made) as views:
        assert rows == {name: views.query(f"SELECT count(*) AS n FROM {name}")["n"][0].as_py() for name in PUBLIC}
    with Views(made) as views:
        assert with_signals == views.query("SELECT count(*) AS n FROM documents WHERE signals.words > 0")["n"][0].as_py() > 0
