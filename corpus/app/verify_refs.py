"""References under audit: everything that points into the archive against what lies there, joined in DuckDB with a budget.

Claims (frontier rows, documents, release rows) and places come in batch by batch; what does not fit in memory is spilled.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from corpus.app.frontier_files import file_at, read_all, read_one
from corpus.app.project import Project
from corpus.app.verify_faults import Findings, Kind
from corpus.app.views import in_batches
from corpus.errors import StoreError
from corpus.model import Kind as UrlKind
from corpus.store.frontier_schema import KIND_CODE

if TYPE_CHECKING:
    from corpus.store.frontier_pg_read import ServerFile

MEMORY_SHARE = 4
_PLACES = pa.schema([("file", pa.string()), ("offset", pa.int64()), ("length", pa.int64()), ("url_id", pa.string())])
_CLAIMS = pa.schema([("who", pa.string()), *_PLACES])
_WRONG = """
SELECT c.who, c.file, c."offset", c.url_id, p.url_id, p.length = c.length FROM claims c
LEFT JOIN places p ON p.file = c.file AND p."offset" = c."offset"
WHERE c.file NOT IN (SELECT file FROM left_out) AND (p.url_id IS NULL OR p.url_id <> c.url_id OR p.length <> c.length)
ORDER BY ALL LIMIT {limit}
"""


class Places:
    """Where captures lie, who claims to know, and which files are left out because they were reported whole."""

    def __init__(self, project: Project) -> None:
        project.layout.spill.mkdir(parents=True, exist_ok=True)
        memory = max(project.config.engine.memory // MEMORY_SHARE // 2**20, 64)
        self._spill = project.layout.spill / "verify"
        config: dict[str, str | bool | int | float | list[str]] = {
            "threads": str(project.config.engine.workers or 2),
            "memory_limit": f"{memory}MiB",
            "temp_directory": str(self._spill),
        }
        self._con = duckdb.connect(":memory:", config=config)
        for name, schema in (("places", _PLACES), ("claims", _CLAIMS)):
            self._con.register("incoming", schema.empty_table())
            self._con.execute(f"CREATE TABLE {name} AS SELECT * FROM incoming")
        self._con.execute("CREATE TABLE left_out (file VARCHAR)")

    def __enter__(self) -> Places:
        return self

    def __exit__(self, *_: object) -> None:
        self._con.close()
        shutil.rmtree(self._spill, ignore_errors=True)  # a folder that was never spilled to is not there

    def put(self, rows: Iterator[tuple[str, int, int, str]]) -> None:
        """(file, offset, length, url_id) of captures."""
        self._insert("places", _PLACES, rows)

    def claim(self, who: str, rows: Iterator[tuple[str, int, int, str]]) -> int:
        """The same, as somebody says it. Returns how many."""
        return self._insert("claims", _CLAIMS, ((who, *row) for row in rows))

    def claim_files(self, who: str, files: list[Path]) -> int:
        """Claims of Parquet files with the columns of documents or releases."""
        if not files:
            return 0
        query = (
            "INSERT INTO claims SELECT ?, file_path, warc_offset, warc_length, url_id FROM read_parquet(?, hive_partitioning = false)"
            " WHERE warc_length > 0"  # a record that could not be read has no place
        )
        told = self._con.execute(query, [who, [str(file) for file in files]]).fetchone()
        return int(told[0]) if told else 0

    def leave_out(self, file: str) -> None:
        """Not joined: reported already (what lies in a damaged file is not known), or not finished."""
        self._con.execute("INSERT INTO left_out VALUES (?)", [file])

    def check(self, findings: Findings) -> None:
        """A fault for every claim that nothing answers."""
        total = self._con.execute("SELECT count(*) FROM claims").fetchone()
        findings.count("references", int(total[0]) if total else 0)
        for who, file, offset, claimed, found, same_length in self._con.execute(
            _WRONG.format(limit=Findings.KEPT * 2)
        ).fetchall():
            if found is None:
                message = f"{who} names a capture of URL {claimed} here, and none begins here"
            elif found != claimed:
                message = f"{who} names a capture of URL {claimed} here, and it is one of URL {found}"
            else:
                message = f"{who} and the archive disagree about the length of this capture"
            assert found != claimed or not same_length, "the query returns only what is wrong"
            findings.add(Kind.REFERENCE, file, message, offset=offset)

    def _insert(self, table: str, schema: pa.Schema, rows: Iterator[tuple[Any, ...]]) -> int:
        total = 0
        for batch in in_batches(rows):
            columns = zip(*batch, strict=True)
            data = pa.table(
                [pa.array(column, type=field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
            )
            self._con.register("incoming", data)
            self._con.execute(f"INSERT INTO {table} SELECT * FROM incoming")
            self._con.unregister("incoming")
            total += len(batch)
        return total


def check_frontier(project: Project, findings: Findings, places: Places, *, running: bool) -> None:
    """Each partition file by itself (while nothing is running: several questions, one moment), and its claims on the archive."""
    for number in range(project.layout.spread):
        path = file_at(project.layout, number)
        if not path.exists():
            continue
        findings.count("partition_files")
        name = _shown(path, project.layout.root)
        try:
            if isinstance(path, Path):  # a server checks its own pages
                for (text,) in read_one(path, "PRAGMA integrity_check(20)"):
                    if text != "ok":
                        findings.add(Kind.FRONTIER, name, f"SQLite says: {text}")
            if not running:
                _tally(path, name, findings)
            rows = read_one(path, "SELECT warc_file, warc_offset, warc_length, url_id FROM urls WHERE warc_file <> ''")
            findings.count(
                "captures_acknowledged", places.claim("the frontier", ((str(f), int(o), int(n), str(u)) for f, o, n, u in rows))
            )
        except StoreError as error:
            findings.add(Kind.FRONTIER, name, error.what)


def _shown(path: Path | ServerFile, root: Path) -> str:
    if not isinstance(path, Path):
        return path.name
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def check_acked_ends(project: Project, findings: Findings) -> None:
    """No sealed segment is shorter than what was acknowledged of it."""
    query = "SELECT w.text, max(s.acked_end) FROM segment s JOIN word w ON w.id = s.file GROUP BY 1"
    try:
        for file, end in read_all(project.layout, query):
            size = project.files.size(str(file))
            if size is not None and size < end:
                findings.add(Kind.REFERENCE, str(file), f"{end} bytes of it were acknowledged, {size} are there")
    except StoreError as error:
        findings.add(Kind.FRONTIER, str(error.where), error.what)


def _tally(path: Path | ServerFile, name: str, findings: Findings) -> None:
    """The tally says how many URLs there are of each state and reason; the rows and the exclusions only counted must agree."""
    page = KIND_CODE[UrlKind.PAGE]
    said = {row[:3]: row[3] for row in read_one(path, "SELECT page, state, reason, n FROM tally WHERE n <> 0")}
    query = (
        f"SELECT page, state, reason, sum(n) FROM (SELECT CASE WHEN u.kind = {page} THEN 1 ELSE 0 END AS page, s.name AS state, r.text AS reason, count(*) AS n"
        " FROM url u JOIN state_name s ON s.code = u.state JOIN word r ON r.id = u.reason GROUP BY 1, 2, 3"
        " UNION ALL SELECT 1, 'excluded', r.text, sum(e.counted) FROM exclusion e JOIN word r ON r.id = e.reason GROUP BY 3) AS counted"
        " GROUP BY 1, 2, 3 HAVING sum(n) <> 0"
    )
    found = {row[:3]: row[3] for row in read_one(path, query)}
    findings.count("urls", sum(found.values()))
    for key in sorted(set(said) | set(found)):
        if said.get(key, 0) != found.get(key, 0):
            findings.add(
                Kind.FRONTIER, name, f"{key[1]} {key[2]}: the tally says {said.get(key, 0)}, there are {found.get(key, 0)}"
            )
