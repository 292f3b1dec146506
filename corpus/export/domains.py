"""`domains.csv`: every registered domain of a release with its share, so that a rights holder finds himself with any tool."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from corpus.export.escape import csv_cell, csv_value
from corpus.export.summary import DomainRow

HEADER = ("domain", "pages", "text_bytes", "share", "cumulative_share", "first_fetched", "last_fetched")


def share(part: int, whole: int) -> str:
    """A share with six digits, by integers alone."""
    millionths = part * 1_000_000 // whole if whole else 0
    return f"{millionths // 1_000_000}.{millionths % 1_000_000:06d}"


def domains_csv(rows: Sequence[DomainRow]) -> str:
    """The file's text: most text first, shares of the release's text."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADER)
    total = sum(row.text_bytes for row in rows)
    running = 0
    for row in rows:
        running += row.text_bytes
        writer.writerow(
            [
                csv_cell(row.domain),
                row.pages,
                row.text_bytes,
                share(row.text_bytes, total),
                share(running, total),
                row.first_fetched,
                row.last_fetched,
            ]
        )
    return out.getvalue()


def read_domains(text: str) -> list[DomainRow]:
    """The rows of a file that `domains_csv` wrote. Raises ValueError for any other text."""
    reader = csv.DictReader(io.StringIO(text))
    if tuple(reader.fieldnames or ()) != HEADER:
        raise ValueError("not the columns of a domains.csv")
    found = list(reader)
    if any(None in row or None in row.values() for row in found):
        raise ValueError("a row has other columns than the head line")
    return [
        DomainRow(csv_value(row["domain"]), int(row["pages"]), int(row["text_bytes"]), row["first_fetched"], row["last_fetched"])
        for row in found
    ]
