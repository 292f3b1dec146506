"""Errands between the members of a fleet: a host that only another member may contact is asked by that one.

A letter lies in a table until the owner of the partition file it is for (or the one who asked) takes it out; one that
nobody takes is thrown away after an hour, and whoever waited stopped long before (`crawl.errands`). Letters are JSON: what
comes out of a database is read, never executed.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, cast

import psycopg

from corpus.crawl.desk import Errand
from corpus.crawl.ports import Request
from corpus.errors import StoreError
from corpus.model import Failed, Failure, FetchResult, Kind, Response
from corpus.store.frontier_pg_db import translated
from corpus.store.frontier_pg_schema import PARENT

KEPT = "1 hour"
_TAKE = (
    f"DELETE FROM {PARENT}.errand WHERE dst = ANY(%s) OR (dst IS NULL AND asker = %s) OR posted < clock_timestamp() - interval '{KEPT}'"
    " RETURNING id, dst, asker, body"
)
Answer = tuple[Errand, Request | None, FetchResult | None]


class FleetPost:
    """Over the connection of a member. Raises StoreError."""

    def __init__(self, con: psycopg.Connection[Any], where: str) -> None:
        self._con, self._where = con, where

    def ask(self, file: int, errand: Errand) -> None:
        """To whoever owns the partition file."""
        self._send(file, errand.asker, json.dumps({"errand": asdict(errand)}))

    def answer(self, errand: Errand, request: Request | None, result: FetchResult | None) -> None:
        """Back to the member that asked."""
        self._send(
            None, errand.asker, json.dumps({"errand": asdict(errand), "request": _request(request), "result": _result(result)})
        )

    def take(self, files: Sequence[int], member: int) -> tuple[list[Errand], list[Answer]]:
        """Errands for these partition files, and answers for this member, oldest first; they are ours now."""
        with translated(self._where):
            rows = sorted(self._con.execute(cast(Any, _TAKE), (list(files), member)).fetchall())
        owned, asked, answers = set(files), list[Errand](), list[Answer]()
        for _, dst, asker, body in rows:
            if dst in owned:
                asked.append(read_errand(json.loads(body)))
            elif dst is None and asker == member:
                answers.append(read_answer(json.loads(body)))
        return asked, answers

    def _send(self, dst: int | None, asker: int, body: str) -> None:
        with translated(self._where):
            self._con.execute(
                cast(Any, f"INSERT INTO {PARENT}.errand (dst, asker, body) VALUES (%s, %s, %s)"), (dst, asker, body)
            )


def read_errand(letter: dict[str, Any]) -> Errand:
    """The errand of a letter. Raises StoreError for one of other making."""
    try:
        value = dict(letter["errand"])
        return Errand(**{**value, "kind": Kind(value["kind"])})
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"not a letter of ours: {error}", "errand") from None


def read_answer(letter: dict[str, Any]) -> Answer:
    """(errand, request, result) of a letter. Raises StoreError for one of other making."""
    errand = read_errand(letter)
    try:
        request, result = letter["request"], letter["result"]
        asked = (
            None
            if request is None
            else Request(**{**request, "kind": Kind(request["kind"]), "headers": _pairs(request["headers"])})
        )
        return errand, asked, None if result is None else _read_result(result)
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"not a letter of ours: {error}", "errand") from None


def _request(request: Request | None) -> dict[str, Any] | None:
    return None if request is None else asdict(request)


def _result(result: FetchResult | None) -> dict[str, Any] | None:
    if result is None:
        return None
    return {
        name: {"b64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value
        for name, value in asdict(result).items()
    }


def _read_result(value: dict[str, Any]) -> FetchResult:
    fields: dict[str, Any] = {
        name: base64.b64decode(v["b64"]) if isinstance(v, dict) and set(v) == {"b64"} else v for name, v in value.items()
    }
    if "failure" in fields:
        return Failed(**{**fields, "failure": Failure(fields["failure"])})
    return Response(**{**fields, "headers": _pairs(fields["headers"])})


def _pairs(headers: Sequence[Sequence[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((str(name), str(text)) for name, text in headers)
