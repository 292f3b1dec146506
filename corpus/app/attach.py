"""CONTRACT's views for the plain `duckdb` shell: one `attach.sql` over the corpus' own files.

Documents, clusters and releases are read where they lie. What DuckDB cannot read itself (the frontier, the logs) is
copied into Parquet files beside the script, as of this moment, and so are the takedowns it honours: writing it again
refreshes it. Nothing else is written.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import duckdb

from corpus.app.project import Project
from corpus.app.views import PUBLIC, Views
from corpus.errors import StoreError
from corpus.store.local_objects import sealed

SCRIPT = "attach.sql"
_HEAD = """-- The views of a corpus for the duckdb shell: duckdb -init attach.sql
-- Written {at}, with the orders up to number {orders} of control/. A takedown that was ordered later is NOT hidden in these
-- views: run `corpus sql --attach` again after every order. `corpus sql` itself always honours all of them.
-- Views: {views}.
-- Documents, clusters and records are read from the corpus itself; pages, hosts, decisions and the like are copies of the
-- moment this was written. Write it again with `corpus sql --attach` after a run.
SET parquet_metadata_cache = true;
"""
_VIEWS = "SELECT view_name, temporary, sql FROM duckdb_views() WHERE NOT internal ORDER BY view_oid"
_TABLES = "SELECT table_name FROM duckdb_tables() WHERE NOT internal ORDER BY table_name"


def write_attach(project: Project, folder: Path | None = None) -> Path:
    """Write `attach.sql` and its Parquet files into `folder` (default: `<store.local>/attach`); returns the script's path.

    Raises StoreError when the folder cannot be written.
    """
    target = (folder or project.layout.local / "attach").resolve()
    try:
        target.mkdir(parents=True, exist_ok=True)
        orders = project.control.version()  # before the views: an order that comes now may be hidden, and is not claimed to be
        with Views(project) as views:
            views.make("documents_with_signals", *PUBLIC)
            script = _head(orders) + _script(views.connection, target)
        with sealed(target / SCRIPT) as part:
            part.write_text(script, "utf-8")
    except (OSError, duckdb.IOException) as error:
        raise StoreError(f"cannot be written: {error}", str(target), "choose another folder with -o") from None
    return target / SCRIPT


def _head(orders: int) -> str:
    return _HEAD.format(views=", ".join(PUBLIC), orders=orders, at=datetime.now(UTC).isoformat(timespec="seconds"))


def _script(connection: duckdb.DuckDBPyConnection, target: Path) -> str:
    """Copies first, then the views in the order they were made: each stands on earlier ones."""
    views = connection.execute(_VIEWS).fetchall()
    copied = [name for (name,) in connection.execute(_TABLES).fetchall()] + [name for name, temporary, _ in views if temporary]
    lines = []
    for name in copied:
        with sealed(target / f"{name}.parquet") as part:
            connection.execute(f"COPY (SELECT * FROM {name}) TO {_text(part)} (FORMAT parquet, COMPRESSION zstd)")
        lines.append(f"CREATE OR REPLACE VIEW {name} AS SELECT * FROM read_parquet({_text(target / f'{name}.parquet')});")
    lines += [sql.strip().replace("CREATE VIEW", "CREATE OR REPLACE VIEW", 1) for _, temporary, sql in views if not temporary]
    return "\n".join(lines) + "\n"


def _text(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
