"""A corpus folder from Python: query it, walk it, ask why, look at raw pages. Read-only; nothing is fetched or written.

    import corpus
    c = corpus.open("demo-corpus")
    c.sql("select domain, count(*) from documents group by 1")

Every call answers from the folder as it stands at that moment, also beside a running crawl.
"""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa

from corpus.app.project import Project, open_project
from corpus.app.sample import flip_table, sample
from corpus.app.views import Views
from corpus.app.why import why
from corpus.config.check import configured_policy
from corpus.config.load import load_config
from corpus.errors import StoreError, UsageError
from corpus.filter.policy import Policy
from corpus.model import Capture
from corpus.store.warc_read import read_in

BATCH_ROWS = 1024
CONFIG_NAME = "corpus.toml"

_PLACE = "SELECT file_path, warc_offset, outcome, near_original, url FROM measured_documents WHERE id = ? ORDER BY fetched_at, file_path, warc_offset"


class Corpus:
    """One corpus folder. Get it from `corpus.open`."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def __repr__(self) -> str:
        return f"Corpus({str(self._project.layout.root)!r})"

    def sql(self, query: str) -> pa.Table:
        """The result of one SELECT over CONTRACT's views as an Arrow table. Raises UsageError for SQL that fails or would write."""
        with Views(self._project) as views:
            return views.query(query)

    def documents(self, where: str = "", *, batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Rows of the view `documents`, batch by batch; `where` is a SQL condition on them. The corpus is never in memory whole.

        Rows of every outcome come, dropped ones too (`reason = ''` are those of the newest release). Raises UsageError for a
        condition that is none.
        """
        query = "SELECT * FROM documents" + (f" WHERE {where}" if where else "")
        with Views(self._project) as views:
            yield from views.stream(query, batch_rows)

    def why(self, url_or_id: str) -> dict[str, Any]:
        """What became of a URL, a `url_id` or an `id`, with all evidence: CONTRACT's `why` document."""
        return why(self._project, url_or_id)

    def sample(self, n: int = 5, *, dropped: bool = False, rule: str | None = None) -> list[dict[str, Any]]:
        """`n` kept (or dropped) documents with what was measured; the choice is by id, so it is the same every time."""
        if n < 1:
            raise UsageError("a sample has at least one document", f"n = {n}")
        return sample(self._project, dropped=dropped or rule is not None, rule=rule, count=n)

    def flips(self, *against: str, n: int = 20) -> dict[str, Any]:
        """What other limits would decide differently, without measuring again: `flips("enough_words.min=50")`, or a policy's name.

        `newly_dropped`, `newly_kept` by rule, counts before and after, and `n` of the documents. Raises UsageError for an unknown rule.
        """
        return flip_table(self._project, against, count=n)

    def policy(self) -> Policy:
        """The policy of the configuration: its rules, their signals and limits."""
        return configured_policy(self._project.config)

    def page(self, id: str) -> Capture:  # noqa: A002  (the column's name)
        """The raw page of a document, from its WARC: status, headers as sent, content-decoded body.

        Raises UsageError for an id nobody knows or a near copy (its HTML was not stored), StoreError when the archive is damaged.
        """
        with Views(self._project) as views:
            views.make("measured_documents")
            found = views.connection.execute(_PLACE, [id]).fetchone()
        if found is None:
            raise UsageError("no document has this id", str(id)[:80], "ids are in the columns id of documents and records")
        file, offset, outcome, original, url = found
        if (order := self._project.control.tombstones().blocks(url=url, id=id)) is not None and order.action == "takedown":
            raise UsageError("taken down on request", id, f"order {order.n} of the control log")
        if outcome == "near-copy":
            raise UsageError("a near copy: only its address was kept", id, f"look at the page of {original}")
        self._project.layout.absolute(file)  # refuses what no crawl wrote
        with self._project.files.open_far(file) as archive:
            capture = read_in(archive, offset, file)
        if capture.fault:
            raise StoreError(f"the page cannot be read at {offset}: {capture.fault}", file, "run corpus verify")
        return capture


def open(path: str | PathLike[str]) -> Corpus:  # noqa: A001  (`corpus.open`, like `gzip.open`)
    """The corpus of a configuration file, or of a folder that holds `corpus.toml`.

    Raises ConfigError for a configuration with mistakes, StoreError where there is no corpus yet, NewerSchema for a newer one.
    """
    given = Path(path)
    return Corpus(open_project(load_config(given / CONFIG_NAME if given.is_dir() else given), create=False))
